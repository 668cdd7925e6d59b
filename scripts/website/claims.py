"""What the first pages state in numbers and names, and what is right.

`python -m scripts.website.claims` lists both; `tests/test_readme.py` compares them. What is not here is held elsewhere:
commands, and that wheels have the size that was kept, by `.ci/run` and `scripts/check_package`; blocks by
`executed.py`; tables of times by `tests/test_pages.py`; the count of names by `tests/test_coverage.py`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tinytorch
from scripts.website import mistakes

ROOT = Path(__file__).resolve().parents[2]
WORDS = "no one two three four five six seven eight nine ten".split()
#: The names of packages where a sentence begins with a capital.
SPELLED = {"numpy": "NumPy", "python": "Python"}


class Claim(NamedTuple):
    """What a page states, and what is right; both are texts."""

    page: str
    words: str
    stated: tuple[str, ...]
    right: tuple[str, ...]


def text_of(page: str) -> str:
    """Return a page with one space between words."""
    return " ".join((ROOT / page).read_text("utf-8").split())


def claim(page: str, pattern: str, *right: object) -> Claim:
    """Return the claim whose stated parts are the groups of a pattern in a page."""
    found = re.search(pattern, text_of(page))
    return Claim(page, pattern, found.groups() if found else (), tuple(map(str, right)))


def lines(*names: str) -> str:
    """Return how many lines files of `core/` have, rounded to a hundred."""
    core = Path(tinytorch.__file__).parent / "core"
    return f"{round(sum((core / f'{name}.py').read_text('utf-8').count(chr(10)) for name in names), -2):,}"


def printed(page: str, library: str) -> str:
    """Return what the blocks of a page print with a library."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec("".join(blocks).replace("tinytorch", library), {"__name__": "__main__"})
    return out.getvalue()


def claims() -> Iterator[Claim]:
    """Yield all claims."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    rows = results["steps"]["rows"]
    platforms = results["platforms"]["rows"]

    # What it needs.
    least = {re.split("[>=]", each)[0]: each.partition(">=")[2] for each in project["dependencies"]}
    python = project["requires-python"].removeprefix(">=")
    needed = " and ".join(SPELLED.get(name, name) for name in least)
    yield claim("README.md", r"tinytorch needs Python ([\d.]+) and NumPy ([\d.]+),", python, least["numpy"])
    yield claim("docs/start/install.md", r"needs Python ([\d.]+), NumPy ([\d.]+) and", python, least["numpy"])
    yield claim("README.md", r"native kernels\) that needs ([\w ]+)\.", needed)
    yield claim("docs/index.md", r"MB that needs (\w+ and \w+),", needed)
    table = re.findall(r"^\| (`.*`) \|", (ROOT / "docs/start/install.md").read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"`(\w+)`", "".join(table))
    yield Claim("docs/start/install.md", "the table of extras", tuple(sorted(named)), tuple(sorted(extras)))
    oracle = re.search(r"torch==([\d.]+)\.0", " ".join(extras["oracle"]))
    yield claim("README.md", r"The tests compare with PyTorch ([\d.]+):", oracle and oracle[1])

    # How large it is.
    native, plain = (platforms[f"x86-64, {name}"]["wheel"] for name in ("Linux", "no compiler"))
    sizes = f"{native / 1e6:.2f}", f"{plain / 1e6:.2f}"
    yield claim("README.md", r"\(([\d.]+) MB, or ([\d.]+) MB without native kernels\)", *sizes)
    yield claim("docs/start/install.md", r"The wheel has ([\d.]+) MB with them, and ([\d.]+) MB without", *sizes)
    yield claim("docs/index.md", r"A wheel of ([\d.]+) MB", sizes[0])
    for page in ("README.md", "docs/index.md", "pyproject.toml"):
        yield claim(page, r"a wheel of about (\w+) megabytes", WORDS[round(native / 1e6)])
    three = lines("graph", "node", "engine")
    yield claim("README.md", r"the ([\d,]+) lines of `graph.py`, `node.py` and `engine.py`", three)
    yield claim("docs/index.md", r"([\d,]+) lines of autograd engine", three)
    yield claim("ARCHITECTURE.md", r"Three files of `core/`, ([\d,]+) lines", three)
    order, then = re.search(r"read in this order: (.*?), then (.*?)\.", text_of("ARCHITECTURE.md")).groups()  # type: ignore[union-attr]
    eleven = re.findall(r"`(\w+)`", order + then)
    yield claim("ARCHITECTURE.md", r"These (\w+) files have ([\d,]+) lines", "eleven", lines(*eleven))
    yield Claim("ARCHITECTURE.md", "eleven files", (str(len(eleven)),), ("11",))
    data = sorted(Path(os.environ.get("TINYTORCH_DATA", ""), "FashionMNIST", "raw").glob("*-ubyte.gz"))
    if len(data) == 4:
        megabytes = 10 * round(sum(each.stat().st_size for each in data) / 1e7)
        for page in ("README.md", "train_fashion_mnist.py"):
            yield claim(page, r"(\d+) MB(?: of images|\) is downloaded)", megabytes)

    # How fast it is.
    slower = [name for name in re.findall(r"^\| (.*?) \|", table_of("README.md"), re.MULTILINE) if name in rows]
    slower = [name for name in slower if rows[name]["ratio"] > 1]
    yield Claim("README.md", "as fast as with PyTorch: rows that are slower", (), tuple(slower))
    convolving = [row for name, row in rows.items() if re.search("CNN|Net|GAN", name) and "inference" not in name]
    gains = [row["without"] / row["ours"] for row in convolving]
    pattern = r"native kernels: (\d) to (\d) times as fast for networks with convolutions"
    yield claim("docs/start/install.md", pattern, math.floor(min(gains)), round(max(gains)))
    fraction = "a fraction of a second" if platforms["x86-64, Linux"]["import"] < 0.5 else "a second"
    yield claim("docs/index.md", r"imports in (a .*? second)<", fraction)

    # How much there is.
    yield claim("README.md", r"the site shows (\d+) mistakes", len(mistakes.programs()))
    lessons = WORDS[len(list((ROOT / "docs" / "course").glob("*.ipynb")))]
    yield claim("README.md", r"(\w+) lessons in Jupyter", lessons)
    yield claim("docs/index.md", r"of (\w+) lessons, if", lessons)
    programs = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
    linked = re.findall(r"\]\(../../examples/(\w+\.py)\)", text_of("docs/start/quickstart.md"))
    yield Claim("docs/start/quickstart.md", "the programs in examples/", tuple(sorted(linked)), tuple(programs))

    # What is the same elsewhere.
    block = re.search(r"```text\n(.*?)\n```", (ROOT / "docs/index.md").read_text("utf-8"), re.DOTALL)
    errors = (ROOT / "docs/errors.md").read_text("utf-8")
    strange = [line for line in block[1].splitlines() if line not in errors] if block else ["no block"]
    yield Claim("docs/index.md", "lines of its error that docs/errors.md lacks", (), tuple(strange))
    guide = text_of("CONTRIBUTING.md")
    homes = {"tinytorch": Path(tinytorch.__file__).parents[1]}  # (which may be installed elsewhere)
    paths = set(re.findall(r"\b((?:tests|scripts|tinytorch|docs|benchmarks|examples)/[\w./-]*\w)", guide))
    lost = [each for each in paths if not (homes.get(each.split("/")[0], ROOT) / each).exists()]
    yield Claim("CONTRIBUTING.md", "paths that lead nowhere", (), tuple(sorted(lost)))
    named = re.findall(r"`(\w+)` (?:in|of) `(tests/[\w/]+\.py)`", guide)
    lost = [f"{name} in {path}" for name, path in named if name not in (ROOT / path).read_text("utf-8")]
    yield Claim("CONTRIBUTING.md", "names that are in no test", (), tuple(lost))
    minutes = re.search(r"\| fast \| .* \| (\d+) minutes \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    yield claim("README.md", r"That takes (\w+) minutes on two cores", WORDS[int(minutes[1])] if minutes else None)
    if importlib.util.find_spec("torch"):
        page = "docs/start/quickstart.md"
        yield Claim(page, "prints the same", (printed(page, "torch"),), (printed(page, "tinytorch"),))


def table_of(page: str) -> str:
    """Return the table of times of a page."""
    return (ROOT / page).read_text("utf-8").partition("<!-- table readme -->")[2].partition("<!-- end")[0]


if __name__ == "__main__":
    for each in claims():
        print("holds" if each.stated == each.right else "WRONG", *each, sep=" | ")
