"""The score: results of JUnit reports, which failures count, and the page."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import compat

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestA" name="test_one[2]"/>
<testcase classname="tests.test_a" name="test_two"><failure message="assert 1 ==
 2">...</failure></testcase>
<testcase classname="tests.test_a" name="test_three"><skipped message="no GPU"/></testcase>
<testcase classname="tests.test_a" name="test_four"/>
<testcase classname="tests.test_a" name="test_four"><error message="in teardown"/></testcase>
<testcase classname="" name="tests.test_b"><error message="collection failure">x
E   ImportError: no name
E   more</error></testcase>
</testsuite></testsuites>"""


def test_results_of_a_report() -> None:
    assert compat.results(REPORT) == {
        "tests.test_a.TestA::test_one[2]": ("passed", ""),
        "tests.test_a::test_two": ("failed", "assert 1 == 2"),
        "tests.test_a::test_three": ("skipped", "no GPU"),
        "tests.test_a::test_four": ("failed", "in teardown"),
        "::tests.test_b": ("failed", "ImportError: no name"),
    }


def sides() -> dict[str, dict[str, Any]]:
    passed = ("passed", "")
    theirs = {name: passed for name in ("tests.test_a::test_two", "tests.test_a.TestA::test_one[2]", "tests.test_b::x")}
    theirs |= {"tests.test_a::test_three": ("skipped", ""), "tests.test_a::test_five": passed}
    theirs["tests.test_a::test_six"] = ("failed", "with PyTorch too")
    return {"pytorch": {"seconds": 1, "tests": theirs}, "tinytorch": {"seconds": 1, "tests": compat.results(REPORT)}}


def test_failures_are_what_pytorch_alone_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "CAUSES", [compat.Cause(r"^einops::.*two: assert", "rounding")])
    assert list(compat.failures("einops", sides())) == [
        ("tests.test_a::test_two", "assert 1 == 2", "rounding"),
        ("tests.test_b::x", "ImportError: no name", "not known"),
        ("tests.test_a::test_five", "not collected", "not known"),
    ]


def test_page_counts_tests_and_causes() -> None:
    text = compat.page({"einops": {"where": "Run on a day", "sides": sides()}})
    assert "tests that PyTorch passes, tinytorch passes 1: 25.00 %" in text.replace("\n", " ")
    assert "| 4 | 1 | 25.0 % |" in text and "| einops | 3 | not known | `test_two`: assert 1 == 2 |" in text
    assert "Run on a day." in text


def test_every_package_has_a_version_and_a_hash() -> None:
    names = [suite.package for suite in compat.SUITES]
    assert len(set(names)) == len(names) >= 12 and names == sorted(names)
    for suite in compat.SUITES:
        assert len(suite.sha256) == 64 and int(suite.sha256, 16) and suite.version and suite.arguments


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in ((["numpy"], "no such package: numpy"), (["--cache", str(compat.ROOT / "x")], "outside")):
        with pytest.raises(SystemExit):
            compat.main(arguments)
        assert words in capsys.readouterr().err
