"""Check the links of the built site: files and anchors exist, and no page asks another place for anything.

python -m scripts.website.links build/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Reader(HTMLParser):
    """Collects a page's anchors, its links, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchor and the address of an element."""
        given = {key: value or "" for key, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loads.add(given.get("href", ""))
        elif "src" in given:
            self.loads.add(given["src"])


def read(path: Path) -> Reader:
    """Return what a page has."""
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    return reader


def failures(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each file that comes from elsewhere."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for address in sorted(page.links | page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    found.append(f"{path.relative_to(site.resolve())} loads {address}")
                continue
            place = site if parts.path.startswith("/") else path.parent  # (the page of errors 404 has absolute links)
            target = (place / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{path.relative_to(site.resolve())}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path.relative_to(site.resolve())}: {address} has no such anchor")
    if not pages:
        found.append(f"there is no page in {site}")
    return found


if __name__ == "__main__":
    lines = failures(Path(sys.argv[1]))
    print("\n".join(lines) or "All links lead somewhere.")
    sys.exit(bool(lines))
