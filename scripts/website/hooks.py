"""What MkDocs does beyond reading docs/: pages made from other files, links between them, and the run of their code."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.website import executed, lessons, mistakes, reference  # noqa: E402
from scripts.website.playground import files as playground  # noqa: E402

#: Pages that are files in the root of the repository.
FROM_ROOT = {
    "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}  # fmt: skip
#: Where links to these lead.
ELSEWHERE = {**FROM_ROOT, "README.md": "index.md", mistakes.TABLE.relative_to(ROOT).as_posix(): "mistakes.md"}

#: The navigation: a page that does not exist is left out, and one that is not named here is in the last section.
NAVIGATION: dict[str, str | list[str]] = {
    "Home": "index.md",
    "Start": [
        "start/install.md", "start/quickstart.md", "start/from-numpy.md", "start/from-pytorch.md", "start/moving.md",
    ],
    "Learn": [
        "autograd.md", "learn/training.md", "learn/data.md", "learn/saving.md", "debugging.md", "doctor.md",
        "pictures.md", "compile.md", "learn/deploying.md", "distributed.md", "sweep.md",
    ],
    "Course": [f"course/{path.stem}.md" for path in sorted((ROOT / "docs" / "course").glob("*.ipynb"))],
    "Playground": "playground.md",
    "Mistakes": ["mistakes.md", "errors.md", *(f"mistakes/{group}.md" for group in mistakes.GROUPS)],
    "How it works": ["how-it-works.md", "architecture.md", "engine.md", "contributing.md"],
    "Reference": ["reference/index.md", *reference.NAVIGATION],
    "Package authors": ["authors.md", "coverage.md"],
    "More": ["differences.md", "performance.md", "accuracy.md", "changelog.md"],
}  # fmt: skip

GUIDE = 3  # what a document counts in a search, next to 1 of a page of the reference
#: What the navigation calls pages whose titles are long.
SHORT = {
    "compile.md": "compile", "doctor.md": "The doctor", "sweep.md": "Sweeps", "onnx.md": "Export and ONNX",
    "fx.md": "torch.fx", "errors.md": "What errors say",
}  # fmt: skip

LINK = re.compile(r"(?<!!)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!\w+:|#)([^)\s]+)\)")
PICTURE = re.compile(r"(!\[[^\]]*\])\((?!\w+:)([^)\s]+)\)")

_made: dict[str, str] = {}  # the page of each file of the repository that has one


def slug(heading: str, separator: str) -> str:
    """Return GitHub's anchor of a heading, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def documents() -> Iterator[tuple[str, str]]:
    """Yield the path in the repository and the text of every document."""
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in FROM_ROOT)]:
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def resolved(origin: str, target: str) -> str:
    """Return the path in the repository that a link of a document leads to."""
    return os.path.normpath(PurePosixPath(origin).parent / target).replace(os.sep, "/")


def sources() -> Iterator[str]:
    """Yield the files of the repository, other than documents, that documents link to; and those of the engine."""
    for origin, text in documents():
        for match in LINK.finditer(text):
            path = resolved(origin, match[2].partition("#")[0])
            if (ROOT / path).is_file() and path not in ELSEWHERE and not path.startswith("docs/"):
                yield path
    architecture = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for path in re.findall(r"`([\w/]+\.py):\d+`", architecture):
        yield f"tinytorch/{path}"
    for file in (ROOT / "tinytorch" / "core").glob("*.py"):
        yield file.relative_to(ROOT).as_posix()


def source_page(path: str) -> str:
    """Return a page that shows a file of the repository."""
    text = (ROOT / path).read_text("utf-8")
    language = {".py": "python", ".c": "c", ".h": "c", ".toml": "toml", ".yml": "yaml"}.get(Path(path).suffix, "text")
    fence = "`" * 5
    head = f"---\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# {path}\n\n"
    return f'{head}{fence}{language} linenums="1"\n{text}\n{fence}\n'


def with_lines(text: str) -> str:
    """Return a text in which references such as "`core/engine.py:24` `walk`" lead to that line."""

    def linked(match: re.Match[str]) -> str:
        path, line = f"tinytorch/{match[1]}", match[2]
        return f"[{match[0]}](<{path}#__codelineno-0-{line}>)"

    return re.sub(r"`([\w/]+\.py):(\d+)`", linked, text)


def on_config(config: Any) -> Any:
    """Set the navigation, from the pages that there are."""
    docs = Path(config.docs_dir)
    made = {*FROM_ROOT.values(), "reference/index.md", *reference.NAVIGATION, *lessons.pages()}
    made |= {"engine.md", "playground.md", "mistakes.md", *(f"mistakes/{group}.md" for group in mistakes.GROUPS)}

    def exists(page: str) -> bool:
        return page in made or (docs / page).exists()

    named = {page for pages in NAVIGATION.values() for page in ([pages] if isinstance(pages, str) else pages)}
    others = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    navigation: list[Any] = []
    for title, pages in NAVIGATION.items():
        if isinstance(pages, str):
            navigation += [{title: pages}] if exists(pages) else []
        else:
            found = [page for page in pages if exists(page)]
            if title == "More":
                found += [page for page in others if page not in named and "/" not in page]
            shown = [{SHORT[page]: page} if page in SHORT else page for page in found]
            navigation += [{title: shown}] if shown else []
    config.nav = navigation
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made: from files of the repository, notebooks, and the reference."""
    _made.clear()
    pages: dict[str, str] = {page: (ROOT / name).read_text("utf-8") for name, page in FROM_ROOT.items()}
    for path in sorted(set(sources())):
        _made[path] = f"source/{path}.md"
        pages[_made[path]] = source_page(path)
    pages["engine.md"] = engine_page()
    pages |= lessons.written()
    pages |= reference.written()
    pages |= mistakes.written()
    for uri, text in {**pages, **playground.written()}.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Let the pages of classes, which the navigation does not list, lead to their neighbours in the namespace."""
    for pages in reference.shelves().values():
        found = [files.get_file_from_path(uri).page for uri in pages]
        for page, before, after in zip(found, [None, *found], [*found[1:], None], strict=False):
            page.previous_page, page.next_page = before, after
    return nav


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """Mark the page that lists a class in the navigation while the class's own page is written."""
    home = next((home for home, pages in reference.shelves().items() if page.file.src_uri in pages), None)
    page.meta["home"] = next((each for each in nav.pages if each.file.src_uri == home), None)
    if page.meta["home"]:
        page.meta["home"].active = True
    return context


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Take the mark back."""
    if page.meta.get("home"):
        page.meta["home"].active = False
    return output


def engine_page() -> str:
    """Return the page that lists the files of the engine, with the first paragraph of each."""
    order = "tensor mode graph node declaration call op engine view inplace strided".split()
    lines = ["# The engine, file by file", "", "In the order in which to read them.", ""]
    files = sorted((ROOT / "tinytorch" / "core").glob("*.py"), key=lambda f: f.stem)
    files.sort(key=lambda file: order.index(file.stem) if file.stem in order else len(order))
    for file in files:
        text = file.read_text("utf-8")
        said = reference.parsed_docstring(text)
        if file.stem == "__init__" or not said:
            continue
        count = text.count("\n")
        lines += [f"## core/{file.name}", "", said, "", f"[{count} lines](source/tinytorch/core/{file.name}.md)", ""]
    return "\n".join(lines)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Run the code of a document, put what it printed into the page, and let links lead to pages of the site."""
    uri = page.file.src_uri
    origins = {made: name for name, made in FROM_ROOT.items()}
    path = ROOT / origins.get(uri, f"docs/{uri}")
    if not path.is_file():
        return shown(markdown)
    try:
        markdown = executed.executed(path)
        executed.check_sessions(path)
    except executed.Stale as error:
        raise PluginError(str(error)) from error
    if uri not in origins:
        page.meta.setdefault("search", {"boost": GUIDE})
    markdown, parts_of_program = playground.with_buttons(markdown)
    markdown = re.sub(executed.COMMENT, "", markdown, flags=re.DOTALL)
    markdown = re.sub(r"\A---\n.*?\n---\n", "", markdown, flags=re.DOTALL)
    if uri == "architecture.md":
        markdown = with_lines(markdown)
    origin = path.relative_to(ROOT).as_posix()

    def led(match: re.Match[str]) -> str:
        target, _, anchor = match[2].strip("<>").partition("#")
        where = resolved(origin, target)
        if (ROOT / where).is_dir():
            return match[1][1:-1]
        if where.startswith("docs/"):
            place = where.removeprefix("docs/")
            place = place.removesuffix(".ipynb") + ".md" if place.endswith(".ipynb") else place
        else:
            place = ELSEWHERE.get(where) or _made.get(where, "")
        if not place:
            return match[1][1:-1]
        relative = os.path.relpath(place, PurePosixPath(uri).parent).replace(os.sep, "/")
        return f"{match[1]}({relative}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^ *```.*?^ *```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    text = "".join(part if i % 2 else PICTURE.sub(led, LINK.sub(led, part)) for i, part in enumerate(parts))
    return playground.with_parts(shown(text), parts_of_program)


def shown(markdown: str) -> str:
    """Give outputs their style."""
    return re.sub(r"^( *)```output$", r"\1``` { .text .output .no-copy }", markdown, flags=re.MULTILINE)


def on_env(env: Any, config: Any, files: Any) -> Any:
    """Stop if the theme is not there (MkDocs says so itself, less clearly)."""
    if importlib.util.find_spec("material") is None:
        raise PluginError("the site needs mkdocs-material: pip install -e '.[docs]'")
    return env
