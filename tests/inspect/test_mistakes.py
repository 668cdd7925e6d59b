"""Programs with a mistake: what is printed for each, also with PyTorch, and that the corrected programs run."""

from __future__ import annotations

import re
from itertools import groupby

import pytest

from scripts.website import mistakes
from scripts.website.executed import steps
from tests.oracle import needs_oracle
from tinytorch.inspect.mistakes import remedies
from tinytorch.inspect.mistakes import rows as rows_of_messages

#: The programs by the first letter of their names: a test for each program would take longer than the program.
PROGRAMS = {
    letter: list(group) for letter, group in groupby(mistakes.programs().values(), lambda program: program.name[0])
}
ERRORS = (mistakes.ROOT / "docs" / "errors.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def faults_of_the_notes_are_raised(monkeypatch) -> None:
    monkeypatch.setenv("TINYTORCH_TRACEBACK", "")


@pytest.mark.parametrize("letter", PROGRAMS)
def test_programs(letter) -> None:
    for program in PROGRAMS[letter]:
        found = mistakes.ours(program)
        notes = mistakes.implied(program, program.place)
        assert found.place == program.place and set(notes) <= set(found.said), program.name
        shown = [line for line in found.said if line not in notes]
        assert shown == program.printed, f"{program.name} (python -m scripts.website.mistakes writes what is printed)"
        assert program.right and mistakes.run(program, "tinytorch", corrected=True) is None, program.name
        # A note that names a remedy names one that was tried.
        assert all(mistakes.is_right(each, program) for each in found.remedies), program.name


def test_the_table_is_as_it_is_written_and_has_no_program_twice() -> None:
    parts = mistakes.parts_of_table()
    assert len(parts) == len(mistakes.programs()) >= 480
    assert len(remedies._remedies) - 1 + len(rows_of_messages.TEMPLATES) <= 87
    for part in parts:
        assert mistakes.written_part(part) == part.rstrip("\n") + "\n"
    assert not re.search(r"""["'](/|~|[A-Z]:)""", "\n".join(program.source for program in mistakes.programs().values()))


def rows(library: str) -> list[tuple[str, int, str]]:
    """Return (what, number of programs, share of a library) for the rows of the table in docs/errors.md."""
    table = re.findall(r"^\| ([a-z ]+) \| (\d+) \| (\d+ \(\d+%\)) \| (\d+ \(\d+%\)) \|$", ERRORS, re.MULTILINE)
    return [(what, int(total), own if library == "tinytorch" else theirs) for what, total, own, theirs in table]


@pytest.mark.parametrize("library", ["tinytorch", pytest.param("torch", marks=needs_oracle)])
def test_the_shares(library) -> None:
    print_of = mistakes.ours if library == "tinytorch" else mistakes.theirs
    found = {program: print_of(program) for program in mistakes.programs().values()}
    expected = []
    for title, name in mistakes.ROWS:
        count, total = mistakes.share(name, found)
        assert library == "torch" or count / total >= 0.8
        expected.append((title, total, f"{count} ({count / total:.0%})"))
    assert rows(library) == expected
    assert f"{len(found)} mistakes" in ERRORS


def test_the_mistakes_in_the_document_are_programs_of_the_table() -> None:
    shown = [step for step in steps(ERRORS) if step.kind == "raises"]
    assert len(shown) >= 12
    for step in shown:
        assert step.text == mistakes.with_tinytorch(mistakes.programs()[step.said].source)
    first = mistakes.ours(mistakes.programs()["linear_after_flatten"])
    assert mistakes.end_of(first.text) in ERRORS


def test_the_page_has_all_programs_and_what_they_print(monkeypatch) -> None:
    monkeypatch.setattr(mistakes, "theirs", lambda program: None)
    pages = mistakes.written()
    assert all(f"mistakes/{group}.md" in pages for group in mistakes.GROUPS)
    for program in mistakes.programs().values():
        page = pages[f"mistakes/{mistakes.group_of(program)}.md"]
        assert f"(mistakes/{mistakes.group_of(program)}.md#{program.name})" in pages["mistakes.md"]
        part = page.partition(f"{{ #{program.name} }}\n")[2].partition("\n## ")[0]
        assert f"``` {{ .python .run }}\n{program.source}```" in part
        assert all(line in part for line in [*program.printed, *mistakes.implied(program, program.place)])
        assert all(f"{code}  # line {number}\n" in part for number, code in program.right.items())


@needs_oracle
def test_pytorch_raises_the_same_classes() -> None:
    for program in mistakes.programs().values():
        found = mistakes.theirs(program)
        assert found is not None, program.name
        if program.name != "compiled_model":  # PyTorch's compiler has an error class of its own
            assert found.kind == mistakes.ours(program).kind, program.name
