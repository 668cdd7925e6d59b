"""The tables of the documents are those that benchmarks/page.py writes from benchmarks/results.json."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, platforms
from benchmarks.__main__ import TABLES, table_of, where
from tinytorch.kernels import native

AT = {"turns": 5, "date": "2026-11-02", "load": [1.5]}
WHERE = {"processor": "P", "cores": 2, "threads": 1, "kernels": None, "versions": {"Python": "3.11.7"}}
ROW = {"unit": "us", "ours": 2.0, "without": 3.14159, "theirs": 4.0, "ratio": 0.5, "memory": 0.25, **AT}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep results in a file of this test."""
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results.json")
    return page.RESULTS


@pytest.mark.parametrize("path", page.DOCUMENTS, ids=lambda path: path.name)
def test_documents_show_what_was_kept(path: Path) -> None:
    text = path.read_text("utf-8")
    assert page.REGION.search(text) and text.count("<!-- table ") == len(page.REGION.findall(text))
    assert page.written(text, page.kept()) == text, "python -m benchmarks --page"


def test_every_table_is_in_a_document_and_has_rows_of_the_benchmarks() -> None:
    texts = "".join(path.read_text("utf-8") for path in page.DOCUMENTS)
    assert sorted(match["name"] for match in page.REGION.finditer(texts)) == sorted(page.TABLES)
    results = page.kept()
    assert set(results) == {source for source, _ in page.TABLES.values()}
    for table, names in TABLES.items():
        rows = list(results[table]["rows"])
        assert rows and rows == [name for name in names if name in rows]
    assert set(page.README) <= set(results["steps"]["rows"])


def test_rows_are_kept_in_order(results: Path) -> None:
    page.save("steps", WHERE, {"b": ROW}, ["a", "b"])
    page.save("steps", WHERE, {"a": ROW}, ["a", "b"])
    page.save("vmap", WHERE, {"c": ROW}, ["c"])
    kept = page.kept()
    assert list(kept) == ["steps", "vmap"] and list(kept["steps"]["rows"]) == ["a", "b"]
    assert kept["steps"] == {"where": WHERE, "rows": {"a": ROW | {"without": 3.142}, "b": ROW | {"without": 3.142}}}
    assert sum(line.startswith("  ") for line in results.read_text("utf-8").splitlines()) == 3
    page.save("steps", WHERE, {"a": ROW | {"ours": 9.0}}, ["a"])
    assert list(page.kept()["steps"]["rows"]) == ["a"] and page.kept()["steps"]["rows"]["a"]["ours"] == 9.0


def test_a_table_has_rows_of_one_machine(results: Path) -> None:
    page.save("steps", WHERE, {"a": ROW}, ["a", "b"])
    before = results.read_text("utf-8")
    with pytest.raises(ValueError, match=r"'steps' were measured with .*'cores': 2.* and this is .*'cores': 4"):
        page.save("steps", WHERE | {"cores": 4}, {"b": ROW}, ["a", "b"])
    assert results.read_text("utf-8") == before
    page.save("vmap", WHERE | {"cores": 4}, {"c": ROW}, ["c"])
    page.save("steps", WHERE | {"cores": 4}, {"b": ROW}, ["a", "b"], anew=True)
    page.save("steps", WHERE | {"cores": 4}, {"a": ROW}, ["a", "b"], anew=True)
    assert list(page.kept()["steps"]["rows"]) == ["a", "b"] and page.kept()["steps"]["where"]["cores"] == 4


def test_what_is_measured_now_can_be_kept(results: Path) -> None:
    for name in ("step", "hessian", "inference"):
        table = table_of(name)
        assert table is not None
        here = where(table)
        assert here["kernels"] == native.instructions and here["processor"] and here["versions"]["NumPy"]
        row = ROW | {"turns": 3, **page.now()}
        page.save(table, here, {TABLES[table][0]: row}, TABLES[table])
        text = " ".join(page.TABLES[table][1](page.kept()[table]).split())
        assert here["processor"] in text and page.day(page.now()["date"]) in text and "medians of 3 turns" in text
    assert table_of("ddp") is None


def test_numbers() -> None:
    assert [page.number(x) for x in (None, 0.01234, 0.5, 2.256, 28.38, 105.6, 1234.0)] == [
        "-", "0.0123", "0.5", "2.26", "28.4", "106", "1234",
    ]  # fmt: skip
    assert page.ratio(1.7) == "1.70" and page.ratio(None) == "-"
    assert page.megabytes(2_512_345) == "2.5" and page.megabytes(754e6) == "754"
    assert page.span([2.0, 0.9, 1.1]) == "0.9 to 2.0" and page.span([3]) == "3"
    assert page.mean([0.5, None, 2.0]) == 1.0


def test_steps_are_a_table_and_a_sentence() -> None:
    rows = {"x": ROW, "y": ROW | {"ratio": 2.0, "date": "2026-10-31", "load": [0.5], "turns": None}}
    head, _, x, _, _, *words = page.steps({"where": WHERE, "rows": rows}).splitlines()
    assert head == "| | native | without | PyTorch | ratio | peak memory |"
    assert x == "| x | 2 µs | 3.14 | 4 | 0.50 | 0.25 |"
    assert " ".join(words) == (
        "The geometric mean of the 2 ratios is 1.00. Measured on 31 October 2026 to 2 November 2026: P, 2 cores, 1 "
        "threads, no native kernels; Python 3.11.7; medians of 5 turns; load 0.5 to 1.5."
    )


def test_compilers_that_were_not_there_have_no_column() -> None:
    row = {"unit": "ms", "times": {"compiled": 0.1, "PyTorch": 0.3}, "first": {"compiled": 1.5}, "ratio": 0.33, **AT}
    more = row | {"times": row["times"] | {"JAX": 0.05}}
    text = page.compiled({"where": WHERE, "rows": {"x": row, "y": more}})
    assert text.splitlines()[0] == "| | compiled | PyTorch | JAX | ratio | first call, compiled, s |"
    assert "| x | 0.1 ms | 0.3 | - | 0.33 | 1.5 |" in text and "| y | 0.1 ms | 0.3 | 0.05 | 0.33 | 1.5 |" in text


def test_peers_of_inference_stand_side_by_side() -> None:
    rows = {"A-1, ONNX Runtime": ROW, "A-1, PyTorch": ROW | {"ratio": 0.7}, "B, PyTorch": ROW | {"ratio": 0.7}}
    text = page.inference({"where": WHERE, "rows": rows})
    assert "| A-1 | 2 µs | 4 | 0.50 | 0.25 | 4 | 0.70 | 0.25 |" in text
    assert "| B | 2 µs | - | - | - | 4 | 0.70 | 0.25 |" in text
    assert "are 0.50 to ONNX Runtime; 0.70 to PyTorch" in " ".join(text.split())


def test_only_tables_are_replaced() -> None:
    text = "a\n<!-- table steps -->\nold\n<!-- end of steps -->\nb\n"
    after = page.written(text, {"steps": {"where": WHERE, "rows": {"x": ROW}}})
    assert after.startswith("a\n<!-- table steps -->\n\n| | native") and after.endswith("<!-- end of steps -->\nb\n")
    assert "old" not in after and page.written(after, {"steps": {"where": WHERE, "rows": {"x": ROW}}}) == after


# Platforms ----------------------------------------------------------------------------------------


def test_a_platform_is_probed() -> None:
    """Only what the probe finds is tested, not how long it takes."""
    found = platforms.probed([sys.executable], folder=str(page.ROOT))
    assert found["kernels"] == native.instructions and found["losses"][-1] < found["losses"][0] < 3
    assert 0 < found["import_numpy"] < found["import"] < found["first"] and found["step"] > 0
    with pytest.raises(RuntimeError, match="No module named 'no_such_library'"):
        platforms.probed([sys.executable], "no_such_library")


def test_the_row_of_a_platform(results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "tinytorch-0-py3-none-any.whl"
    wheel.write_bytes(bytes(1000))
    times = {"import": 0.2, "import_numpy": 0.1, "first": 0.5, "step": 0.002}
    found = {"python": "3.11.7", "numpy": "2.4.6", "kernels": None, "losses": [2.3, 2.1], **times}
    found |= {"install": 3.0, "installed": {"own": 9_000_000, "all": 60_000_000}}
    monkeypatch.setattr(platforms, "installed", lambda *arguments: copy.deepcopy(found))
    options: dict[str, Any] = {
        "python": "python", "torch": None, "wheel": str(wheel), "wheels": str(tmp_path), "pyodide": None,
        "system": False, "note": "a note", "repeats": 1,
    }  # fmt: skip
    (scratch := tmp_path / "scratch").mkdir()
    row = platforms.measured(types.SimpleNamespace(**options), scratch)  # type: ignore[arg-type]
    assert row["wheel"] == 1000 and row["note"] == "a note" and row["machine"] and "losses" not in row
    page.save("platforms", {}, {"here": row}, ["here"])
    text = page.platforms(page.kept()["platforms"])
    assert "| here | 3.11.7, 2.4.6 | - | 0.0 | 9.0 | 60.0 | 3.0 s | 0.20 s (0.10) | 0.50 s | 2 ms |" in text
    assert text.rstrip().endswith("a note")
    found["losses"] = [2.3, 2.4]
    with pytest.raises(RuntimeError, match="has not learned"):
        platforms.measured(types.SimpleNamespace(**options), scratch)  # type: ignore[arg-type]


def test_rows_of_other_machines_are_added(results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "DOCUMENTS", [])
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"noise\n{json.dumps({name: {'wheel': 1}})}\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["platforms", "--add", str(tmp_path / "a"), str(tmp_path / "b")])
    assert platforms.main() == 0
    assert page.kept() == {"platforms": {"where": {}, "rows": {"a": {"wheel": 1}, "b": {"wheel": 1}}}}


def test_platforms_need_the_standard_library_alone() -> None:
    code = "import sys; sys.path.append('.'); import benchmarks.platforms; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code], cwd=page.ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
