"""The code in the documents runs and prints what they show; the interactive examples also with PyTorch."""

from __future__ import annotations

import copy
import doctest
import importlib
import json
import re
from pathlib import Path

import pytest

import tinytorch
import tinytorch.core.tensor
import tinytorch.nn
from scripts import make_docs_picture
from scripts.website import from_numpy, lessons, reference
from scripts.website.executed import Stale, executed, not_run, run_session, sections
from tests.declared import FUNCTIONS
from tests.oracle import needs_oracle
from tinytorch.core.supplied import load

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
#: Documents whose blocks in the language `python` run; `test_readme.py` runs those of README.md.
DOCUMENTS = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]

#: Sections about features that PyTorch does not have.
OURS = {
    "A picture of the graph", "A sweep from code", "Graph breaks", "Tensors of many sizes",
    "What is a loss made of?", "Why is a gradient None?", "Which parameters are trained?",
    "The first number that is not finite", "Is it reproducible?", "Where do two models part?",
    "A drawing of a model", "Plots of a training", "Bars", "In a block",
}  # fmt: skip


CASES = [
    pytest.param(page, start, heading, examples, id=f"{page.stem}-{heading}")
    for page in PAGES
    for start, rest in [sections(page)]
    for heading, examples in rest
]


@pytest.mark.parametrize(("page", "start", "heading", "examples"), CASES)
def test_examples(page, start, heading, examples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_session(str(page), heading, start + examples, "tinytorch")


@needs_oracle
@pytest.mark.parametrize(
    ("page", "start", "heading", "examples"), [case for case in CASES if case.values[2] not in OURS]
)
def test_examples_print_the_same_with_pytorch(page, start, heading, examples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_session(str(page), heading, start + examples, "torch")


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.stem)
def test_blocks_run_and_print_what_is_shown(page):
    executed(page)


@pytest.mark.parametrize("path", lessons.notebooks(), ids=lambda path: path.stem)
def test_lessons_run_and_their_tests_test(path):
    found, answered = lessons.outputs(path, lessons.answers(path)), {number for number, *_ in lessons.answers(path)}
    assert sum(bool(cell.solution) for cell, _, _ in found) == len(answered) >= 3
    assert any(drawing for _, _, drawing in found)


def test_an_exercise_is_not_solved_before_it_is_done(tmp_path):
    """Run a lesson whose test tests nothing, or says nothing."""
    exercise = {"cell_type": "code", "metadata": {"tags": ["exercise"]}, "source": ["x = 0"]}
    path = tmp_path / "lesson.ipynb"
    for source, words in [("assert True, 1", "passes without a solution"), ("assert x", "an assertion has no message")]:
        test = {"cell_type": "code", "metadata": {"tags": ["test"]}, "source": [source]}
        path.write_text(json.dumps({"cells": [exercise, test]}))
        with pytest.raises(Stale, match=words):
            lessons.outputs(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```python\nprint(1)\n```\n", "does not show"),
        ("```python\nprint(1)\n```\n\n```output\n2\n```\n", "the code prints\n1"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("<!-- raises one -->\n\n```python\nx = 1\n```\n", "the block raises no error"),
        ("<!-- raises one -->\n\n```python\n1 / 0\n```\n\n```output\nError\n```\n", "prints\nZeroDivisionError"),
        ("<!-- from README.md -->\n\n```python\nnowhere\n```\n", "is not in README.md"),
        ("<!-- figure: nothing -->\n", "no open figure"),
    ],
)
def test_a_stale_page_fails(text, words, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(Stale, match=words):
        executed(page)


def test_few_blocks_do_not_run():
    reasons = [reason for page in DOCUMENTS for reason in not_run(page.read_text("utf-8"))]
    assert all(reasons)
    assert len(reasons) <= 10


EXAMPLES = ROOT / "scripts" / "website" / "examples.md"


@pytest.mark.parametrize(
    ("names", "examples"), [pytest.param(*case, id=case[0].split()[0]) for case in sections(EXAMPLES)[1]]
)
def test_examples_of_the_reference(names, examples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(names.split()) <= set(reference.entries())
    run_session(str(EXAMPLES), names, examples, "tinytorch", {"torch": tinytorch})


def test_every_public_name_has_an_example():
    assert reference.without_example() == []
    layers = {f"nn.{name}" for name in tinytorch.nn.__all__ if isinstance(getattr(tinytorch.nn, name), type)}
    assert len(layers) > 150 and layers <= set(reference.entries())
    assert {f"Tensor.{name}" for name in dir(tinytorch.Tensor) if name[0] != "_"} <= set(reference.entries())


@pytest.mark.parametrize("library", ["tinytorch", pytest.param("torch", marks=needs_oracle)])
def test_every_row_of_what_differs_from_numpy(library):
    assert from_numpy.check(importlib.import_module(library)) > 50


def overlooked():
    """Return the docstrings with examples that pytest does not collect: of `pointwise` ops and methods of Tensor."""
    docstrings = {}
    load(tinytorch.Tensor)
    members = [*vars(tinytorch.Tensor).items(), *((name, function.raw) for name, function in FUNCTIONS.items())]
    for name, member in [*members, *vars(tinytorch.core.tensor).items()]:
        function = getattr(member, "fget", member)
        generated = "<locals>" in getattr(function, "__qualname__", "")
        own = getattr(function, "__module__", "") in ("tinytorch.core.call", "tinytorch.core.tensor")
        if (generated or own) and ">>>" in (member.__doc__ or ""):
            docstrings.setdefault(member.__doc__, name)
    return [pytest.param(name, text, id=name) for text, name in docstrings.items()]


def test_the_examples_of_generated_functions_are_found() -> None:
    names = {param.id for param in overlooked()}
    assert len(names) > 100
    assert {"exp", "mul", "neg"} <= names


@pytest.mark.parametrize("library", ["tinytorch", pytest.param("torch", marks=needs_oracle)])
@pytest.mark.parametrize(("name", "text"), overlooked())
def test_examples_of_what_is_made(name, text, library):
    examples = doctest.DocTestParser().get_examples(text)
    run_session(name, name, examples, library, {"torch": importlib.import_module(library)})


def of_compat():
    """Return the docstrings with examples in `compat/`, whose modules have other names than their files."""
    tests = []
    folder = Path(tinytorch.__file__).parent / "compat"
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts == ("__init__",) or parts[0] == "as_torch":  # (which changes the meaning of torch in this process)
            continue
        module = importlib.import_module(".".join(["tinytorch", *parts[: len(parts) - (parts[-1] == "__init__")]]))
        tests += [test for test in doctest.DocTestFinder().find(module) if test.examples]
    return [pytest.param(test, id=test.name) for test in tests]


@pytest.mark.parametrize("test", of_compat())
def test_examples_of_compat(test):
    run_session(test.name, test.name, test.examples, "tinytorch", {**test.globs, "torch": tinytorch})


#: Expressions that raise those errors of the table in autograd.md which no example of the page shows.
ERRORS = [
    "plain.sum().backward()", "torch.autograd.grad(y.sum(), plain)", "y.backward(torch.ones(3))",
    "setattr(y, 'requires_grad', False)", "torch.tensor([1, 2], requires_grad=True)", "plain.retain_grad()",
    "plain.register_hook(print)", "y.register_post_accumulate_grad_hook(print)", "torch.optim.SGD([y], lr=0.1)",
    "copy.deepcopy(y)", "setattr(x, 'grad', torch.ones(3))", "x[0].add_(1)", "y.unbind()[0].mul_(2)",
    "torch.no_grad()(lambda: y[:1])().mul_(2)", "torch.inference_mode()(torch.ones)(2).add_(1)",
    "torch.autograd.grad((Double.apply(x) ** 2).sum(), x, create_graph=True)[0].sum().backward()",
]  # fmt: skip


def raised(torch):
    """Yield what each of `ERRORS` raises."""

    class Double(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 2)
        backward = staticmethod(torch.autograd.function.once_differentiable(lambda ctx, g: g * 2))

    x, plain = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2)
    for text in ERRORS:
        with pytest.raises((RuntimeError, ValueError)) as caught:
            eval(text, {"torch": torch, "x": x, "plain": plain, "y": x * 2, "Double": Double, "copy": copy})
        yield f"error: {caught.value}".lower()


@pytest.mark.parametrize("library", ["tinytorch", pytest.param("torch", marks=needs_oracle)])
def test_every_message_of_the_table_is_met(library):
    page = ROOT / "docs" / "autograd.md"
    messages = re.findall(
        r"^\| `(.+?)`(?: \(a warning\))? \|.*\|.*\|$", page.read_text("utf-8").split("## Which error")[1], re.M
    )
    assert len(messages) > 20
    wanted = " ".join(example.want for _, examples in sections(page)[1] for example in examples).lower()
    wanted += " ".join(raised(importlib.import_module(library)))
    for message in messages:
        assert re.search("(error|warning): " + re.escape(message.lower()).replace(r"\.\.\.", ".*"), wanted), message


def slug(heading):
    """Return GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = page.read_text("utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)}
    targets = re.findall(r"\]\((?!http)([^)]+)\)", prose)
    for target in targets:
        file, _, anchor = target.partition("#")
        if file:
            path = (page.parent / file).resolve()
            if path.is_relative_to(ROOT / "tinytorch"):  # which may be installed elsewhere
                path = Path(tinytorch.__file__).parent / path.relative_to(ROOT / "tinytorch")
            assert path.exists(), target
        elif anchor:
            assert anchor in anchors, target


def test_pictures_are_fresh():
    for path, text in make_docs_picture.written().items():
        assert path.read_text("utf-8") == text, f"run scripts/make_docs_picture.py: {path.name} is stale"
