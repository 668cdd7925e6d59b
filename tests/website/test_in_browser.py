"""The playground in Chromium: with a stub for Python, and, where a local Pyodide is found, with Python itself.

They need the package playwright, and a Chromium of the system.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.website.playground import files
from tests.oracle import needs_oracle
from tests.website import serving
from tests.website.serving import needs_pyodide, pyodide
from tests.website.test_playground import ERRORS, TRAINING

HERE = Path(__file__).resolve().parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None or CHROMIUM is None, reason="needs playwright and Chromium"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield (made := playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]))
        made.close()


@pytest.fixture(scope="module", params=[False, True], ids=["not isolated", "isolated"])
def stubbed(request, tmp_path_factory):
    """Return the address of a playground with a stub."""
    folder = tmp_path_factory.mktemp("site")
    stub = tmp_path_factory.mktemp("stub")
    shutil.copy(HERE / "pyodide.mjs", stub)
    serving.write(folder, stub, kernels=None)
    with serving.served(folder, request.param) as address:
        yield address


@pytest.fixture(scope="module", params=[False, True], ids=["not isolated", "isolated"])
def real(request, tmp_path_factory):
    """Return the address of a playground with Python."""
    folder = tmp_path_factory.mktemp("site")
    serving.write(folder, pyodide())
    with serving.served(folder, request.param) as address:
        yield address


class Page:
    """A playground in a tab."""

    def __init__(self, browser, address, fragment=""):
        context = browser.new_context(accept_downloads=True, permissions=["clipboard-read", "clipboard-write"])
        self.errors = []
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{address}/playground.html{fragment}")

    def ready(self):
        self.page.wait_for_selector("#playground[data-state=ready]", timeout=60_000)
        return self

    def part(self, name):
        return self.page.locator(f"#pg-{name}")

    def type(self, code):
        self.part("text").fill(code)
        return self

    def run(self, code):
        """Run a program to its end, and return its output."""
        self.type(code)
        self.part("run").click()  # (the page says at once that it is running)
        self.ready()
        return self.output()

    def output(self):
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.part("output").inner_text()

    def status(self):
        return self.part("status").inner_text()

    def stop(self):
        """Press Stop, and wait until the page no longer says that a program runs, which would go on for a minute.

        How long it takes is measured elsewhere: a busy machine must not let a test fail.
        """
        self.part("stop").click()
        self.page.wait_for_selector("#playground:not([data-state=running])")

    def download(self, name, folder):
        with self.page.expect_download() as download:
            self.part("files").get_by_text(name, exact=False).click()
        path = folder / name
        download.value.save_as(path)
        return path

    def close(self):
        self.page.context.close()
        assert self.errors == []


@pytest.fixture
def page(browser, stubbed):
    made = Page(browser, stubbed).ready()
    yield made
    made.close()


# With a stub --------------------------------------------------------------------------------------


def test_the_page_asks_no_other_place(browser, stubbed):
    context = browser.new_context()
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(f"{stubbed}/playground.html")
    page.wait_for_selector("#playground[data-state=ready]")
    assert all(url.startswith(stubbed) for url in asked) and f"{stubbed}/pyodide/pyodide.mjs" in asked
    assert f"{len(json.loads((files.FOLDER / 'config.json').read_text())['archives'])} archives" in page.inner_text(
        "#pg-status"
    )
    context.close()


def test_a_terminal(page):
    assert page.run("print a\\nb\\n\nprint c\\rd\\n") == "a\nb\nd"
    assert page.run("print 0%|  |\\r 50%|# |\\r100%|##|\\nend\\n") == "100%|##|\nend"
    assert page.run("print one\\ntwo\\u001b[A\\rONE\\u001b[K\\n\\nthree\\n") == "ONE\ntwo\nthree"
    assert page.run("print longer\\rab\\u001b[K\\n") == "ab"
    assert page.part("output").locator(".pg-stdout").count() == 1
    text = page.run("print " + "\\n".join(map(str, range(5000))))
    assert text.split("\n")[-1] == "4999" and 1990 < len(text.split("\n")) <= 2000


def test_an_error_marks_its_line(page):
    page.run("print a\\n\nerror wrong\nprint b\\n")
    assert page.output() == "a\nwrong"
    assert page.part("gutter").locator(".pg-wrong").inner_text() == "2"
    assert page.status().startswith("Ended in")
    page.part("text").press("End")
    page.page.keyboard.type(" ")
    assert page.part("gutter").locator(".pg-wrong").count() == 0


def test_stop(page):
    for program in ("forever", "busy"):
        page.type(f"print begun\\n\n{program}")
        page.part("text").press("Control+Enter")
        page.part("output").get_by_text("begun").wait_for()
        time.sleep(0.2)
        assert page.part("run").is_disabled() and page.part("stop").is_enabled()
        page.stop()
        page.ready()
        assert "Stopped" in page.output()
        assert page.run("print again\\n") == "again"


def test_stop_by_escape_and_run_while_python_is_loading(browser, stubbed):
    page = Page(browser, stubbed)
    page.type("print waited\\n\nforever")
    page.part("text").press("Control+Enter")
    page.part("output").get_by_text("waited").wait_for()
    page.part("text").press("Escape")
    page.ready()
    assert "Stopped" in page.output()
    page.close()


def test_python_is_started_again_after_it_has_failed(page):
    text = page.run("print a\\n\ncrash memory access out of bounds")
    assert text.split("\n")[:2] == ["a", "memory access out of bounds"]
    assert page.run("print again\\n") == "again"


def test_curves(page):
    points = {"loss": [[k, 1 / k] for k in range(1, 5001)], "critic": [[1, 0.5], [2, None], [3, 2.5], [4, 1.0]]}
    page.run(f"points {json.dumps(points)}\npoints {json.dumps({'once': [[1, 1.0]]})}")
    figure = page.part("curves")
    figure.locator("svg").wait_for()
    assert figure.locator("path.curve").count() == 3  # the loss, and smoothed; the other has few points
    assert "loss 0.0002000 at 5000" in figure.inner_text() and "once" not in figure.inner_text()
    path = figure.locator("path.curve").last.get_attribute("d")
    assert path.count("M") == 2 and path.count("L") == 1  # there is a gap
    before = figure.locator("path.curve").first.get_attribute("d")
    figure.get_by_role("button", name="log").click()
    assert figure.get_by_role("button", name="log").get_attribute("aria-pressed") == "true"
    assert figure.locator("path.curve").first.get_attribute("d") != before
    page.run("print none\\n")
    assert figure.is_hidden()
    page.type('points {"loss": [[1, 3.0], [2, 2.0], [3, 1.0]]}\nforever')
    page.part("run").click()
    figure.get_by_text("at 3").wait_for()
    assert page.page.get_attribute("#playground", "data-state") == "running"
    page.part("stop").click()
    page.ready()


def test_html_is_shown_without_scripts(page):
    page.run('print a\\n\nhtml <style>b{color:red}</style><b onclick="x()">bold</b><script>window.bad = 1</script>'
             '<img src="nowhere" onerror="window.bad = 1"><a href="javascript:bad()">a</a>\nprint c\\n')  # fmt: skip
    shown = page.part("output").locator(".pg-display")
    assert shown.locator("b").inner_text() == "bold"
    inner = shown.evaluate("element => element.shadowRoot.innerHTML")
    assert "onclick" not in inner and "script" not in inner and "onerror" not in inner
    assert page.page.evaluate("window.bad") is None
    kinds = page.part("output").evaluate("element => [...element.children].map(child => child.className)")
    assert kinds[:3] == ["pg-line", "pg-display", "pg-line"] and page.output().split() == ["a", "c"]


def test_files_are_handed_out_and_kept_for_a_new_worker(page, tmp_path):
    page.run("file model.pth\nfile model.pth")
    assert page.part("files").locator("button").count() == 1
    assert page.download("model.pth", tmp_path).read_bytes() == b"\1\2\3"
    page.type("busy")
    page.part("run").click()
    page.stop()
    page.ready()
    assert "/playground/model.pth" in page.run("files").split()


def test_a_link_opens_its_program_and_does_not_run_it(browser, stubbed):
    page = Page(browser, stubbed).ready()
    code = "print shared\\n\n# \u00e4\u6f22 & <b>\n"
    page.type(code)
    page.part("share").click()
    page.part("status").get_by_text("link").wait_for()
    link = page.page.url
    assert page.page.evaluate("navigator.clipboard.readText()") == link
    page.close()
    other = Page(browser, stubbed, link[link.index("#") :]).ready()
    assert other.part("text").input_value() == code
    assert other.output() == ""
    other.page.evaluate("location.hash = '#code=AAAA'")
    other.part("notice").get_by_text("The link is damaged").wait_for()
    assert other.part("text").input_value() == code
    other.close()


def test_the_editor(page):
    text = page.part("text")
    page.type("")
    page.page.keyboard.type("def f(x):\nreturn x  # \u00e4 <b>\n")
    assert text.input_value() == "def f(x):\n    return x  # \u00e4 <b>\n    "
    assert page.part("colours").locator(".pg-keyword").all_inner_texts() == ["def", "return"]
    assert page.part("colours").locator(".pg-comment").inner_text() == "# \u00e4 <b>"
    assert page.part("gutter").inner_text().split() == ["1", "2", "3"]
    page.page.keyboard.press("Tab")
    assert text.input_value().endswith("\n        ")
    page.page.keyboard.press("Shift+Tab")
    page.page.keyboard.press("Shift+Tab")
    assert text.input_value().endswith("<b>\n")
    page.page.keyboard.press("Control+a")
    page.page.keyboard.press("Tab")
    assert text.input_value().startswith("    def f(x):\n        return")
    page.page.keyboard.press("Control+z")
    assert text.input_value().startswith("def f(x):\n    return")
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.id") != "pg-text"
    first = page.part("examples").locator("button").first
    first.click()
    assert text.input_value() == files.examples()[0]["code"]
    page.page.reload()
    page.ready()
    assert text.input_value() == files.examples()[0]["code"]


def test_what_is_missing_is_said(browser, tmp_path):
    (tmp_path / "none").mkdir()
    folder = tmp_path / "site"
    serving.write(folder, tmp_path / "none")
    with serving.served(folder, False) as address:
        page = Page(browser, address)
        page.part("notice").get_by_text("Python could not be run").wait_for()
        assert page.part("run").is_disabled()
        page.close()
    (folder / "playground" / "examples.json").unlink()
    with serving.served(folder, False) as address:
        page = Page(browser, address)
        page.part("notice").wait_for()
        page.close()
    context = browser.new_context()
    tab = context.new_page()
    tab.goto((folder / "playground.html").as_uri())
    tab.locator("#pg-notice").get_by_text("python -m http.server").wait_for()
    assert tab.locator("#pg-run").is_disabled()
    context.close()


BLOCKS = """<!doctype html><meta charset="utf-8"><article>
<div class="language-pycon highlight"><pre><code>&gt;&gt;&gt; import tinytorch as torch\n</code></pre></div>
<h2>One</h2>
<div class="language-pycon highlight" id="session"><pre><code>&gt;&gt;&gt; torch.ones(1)\ntensor([1.])\n</code></pre>
</div>
<h2>Two</h2>
<div class="language-pycon highlight" id="other"><pre><code>&gt;&gt;&gt; 2\n2\n</code></pre></div>
<div class="language-python run-0 highlight"><pre><code>x = 1</code></pre></div>
<div class="language-python run-1 highlight" id="second"><pre><code>print(x)</code></pre></div>
<div class="language-python run highlight" id="alone"><pre><code>y = 2\n</code></pre></div>
<div class="language-python highlight" id="none"><pre><code>no</code></pre></div>
</article><script type="application/json" id="parts-of-program">[["x = ...\\n", "x = 1\\n"], "print(x)\\n"]</script>
<script src="assets/run.js"></script>"""


def test_buttons_open_the_code_of_their_block(browser, tmp_path):
    (tmp_path / "stub").mkdir()
    shutil.copy(HERE / "pyodide.mjs", tmp_path / "stub")
    folder = tmp_path / "site"
    serving.write(folder, tmp_path / "stub")
    (folder / "blocks.html").write_text(BLOCKS, "utf-8")
    wanted = {
        "session": ">>> import tinytorch as torch\n>>> torch.ones(1)\ntensor([1.])\n",
        "other": ">>> import tinytorch as torch\n>>> 2\n2\n",
        "second": "x = 1\n\n\nprint(x)\n",
        "alone": "y = 2\n",
    }
    with serving.served(folder, False) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}/blocks.html")
        assert page.locator("#none button").count() == 0 and page.locator("button").count() == 6
        for name, code in wanted.items():
            with context.expect_page() as opened:
                page.locator(f"#{name} button").click()
            opened.value.wait_for_function("document.getElementById('pg-text')?.value.length > 0")
            assert opened.value.locator("#pg-text").input_value() == code
            opened.value.close()
        context.close()


# With Python --------------------------------------------------------------------------------------


@needs_pyodide
def test_python(browser, real, tmp_path):
    """Train, stop, fail, save and go on in one tab: it takes seconds to load."""
    page = Page(browser, real).ready()
    try:
        assert "tinytorch" in page.status()
        quickstart = files.examples()[0]["code"]
        text = page.run(quickstart)
        assert "epoch 12: loss 0.2" in text and "accuracy 9" in text
        assert page.part("curves").locator("path.curve").count() == 2
        assert page.part("curves").inner_text().startswith("loss 0.")

        text = page.run(ERRORS)
        assert "mat1 and mat2 shapes cannot be multiplied (4x5 and 2x3)" in text
        assert "in 0: Linear(in_features=2" in text and "remedy: nn.Linear(5, 3)" in text
        assert page.part("gutter").locator(".pg-wrong").inner_text() == "6"

        text = page.run(TRAINING)
        assert "torch True" in text and "100%|" in text and text.count("it/s") == 1
        shown = page.part("output").locator(".pg-display .tt-main").first  # (in a shadow root)
        assert shown.inner_text() == "Parameter"
        path = page.download("model.pth", tmp_path)
        check_state(path, "tinytorch")

        for loop in ("while True:\n    pass", "while True:\n    print('x')", LONG):
            page.type(f"print('begun')\n{loop}\n")
            page.part("run").click()
            page.part("output").get_by_text("begun").first.wait_for() if "'x'" not in loop else time.sleep(1)
            time.sleep(0.5)
            page.stop()
            page.ready()
            assert "Stopped." in page.output()
        assert page.run("import torch\nprint(sorted(torch.load('model.pth')))") == "['bias', 'weight']"

        if any(pyodide().glob("matplotlib-*.whl")):
            page.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
            assert page.part("output").locator(".pg-drawing svg").count() == 1
    finally:
        page.close()


LONG = "import torch\nx = torch.rand(1500, 1500)\nfor _ in range(99):\n    x @ x"


@needs_pyodide
@needs_oracle
def test_pytorch_reads_what_was_downloaded(browser, tmp_path):
    serving.write(tmp_path / "site", pyodide())
    with serving.served(tmp_path / "site", False) as address:
        page = Page(browser, address).ready()
        page.run(TRAINING)
        check_state(page.download("model.pth", tmp_path), "torch")
        page.close()


def check_state(path, library):
    """Load a file natively, and compute with it: the model has learnt that 1 and 1 make 3."""
    program = f"""
import {library} as torch

state = torch.load({str(path)!r}, weights_only=True)
print((state["weight"].sum() + state["bias"]).item())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert abs(float(run.stdout) - 3) < 0.1
