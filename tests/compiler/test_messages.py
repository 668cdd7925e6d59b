"""What a compiled function says: in the log at its first graph break, or when it gives up, once; and by `explain`."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import tinytorch as torch
from tinytorch.compiler import calls, compiled, tracing

LOG = "tinytorch.compiler.compiled"


def printing(x: Any) -> Any:
    y = x * 2
    print(y.shape)
    return y


def line_of_print() -> str:
    return f"{__file__}:{printing.__code__.co_firstlineno + 2}"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {(record.name, record.levelno) for record in caplog.records} <= {(LOG, logging.WARNING)}
    return [record.getMessage() for record in caplog.records]


def test_a_graph_break_is_said_once_with_the_line(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(printing)
    compiled(torch.ones(2))
    assert not said(caplog)  # a first call may differ
    for _ in range(3):
        compiled(torch.ones(2))
    (message,) = said(caplog)
    assert message.startswith(f"torch.compile: printing: graph break at {line_of_print()} (print is called")
    first, second, *rest = compiled.explain().splitlines()
    where = f"1 graph break at {line_of_print()} (print is called, whose effects are not known)"
    assert first == f"printing: 1 program, {where}"
    assert second == "one program ran 0 of 4 calls; 4 ran in parts"
    assert rest[0].endswith("; ran 1 times")


def test_giving_up_is_said_once_with_the_line(caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {"print": print}
    exec("def printing(x):\n    print(x.shape)\n    return x * 2", scope)  # its source is not found
    compiled = torch.compile(scope["printing"])
    for _ in range(4):
        compiled(torch.ones(2))
    (message,) = said(caplog)
    assert message.startswith("torch.compile: printing runs as Python: the source of printing is not found")
    assert (
        compiled.explain().splitlines()[0] == "printing: 0 programs ran 0 of 4 calls; 0 were recorded, 4 ran as Python"
    )


@pytest.mark.parametrize(("owner", "name"), [(calls, "_builtin_method"), (tracing.Tracer, "at"), (compiled, "Entry")])
def test_an_error_of_the_compiler_is_said_once(
    owner: Any, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(x: Any, state: Any) -> Any:
        y = x + 1
        state.mul_(2)
        return (y + len("a".upper())) * state

    monkeypatch.setattr(logging.getLogger("tinytorch.compiler.recorder"), "handlers", [])  # they let tests fail
    monkeypatch.setattr(owner, name, lambda *args: {}[name])
    function, states = torch.compile(f), (torch.ones(2), torch.ones(2))
    for k in range(4):
        assert torch.equal(function(torch.full((2,), k), states[0]), f(torch.full((2,), k), states[1]))
    assert torch.equal(*states)
    (error,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert error.startswith(f"torch.compile: an error of the compiler: KeyError: '{name}'")


def test_methods_of_numbers_are_called(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(lambda x: x * (3.0).__add__(1.0), fullgraph=True)
    assert all(compiled(torch.ones(1)).item() == 4 for _ in range(2)) and not said(caplog)


def test_fullgraph_names_the_line() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.compile(printing, fullgraph=True)(torch.ones(2))
    assert line_of_print() in str(raised.value)


def test_more_signatures_than_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(lambda x, k: x + k, recompile_limit=2)
    for k in (1, 2, 3, 4, 5, 6, 5, 4, 1):
        assert compiled(torch.zeros(2), k).tolist() == [k, k]
    (message,) = said(caplog)
    assert "more than 2 ways" in message and "recompile_limit" in message
    # The programs that there are go on running.
    assert "<lambda>: 2 programs ran 2 of 9 calls; 5 were recorded, 2 ran as Python" in compiled.explain()


def test_the_least_used_program_makes_room(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(lambda x, k: x + k, recompile_limit=2)
    for k in (1, 1, 1, 2, 3, 3, 1, 3):
        assert compiled(torch.zeros(2), k).tolist() == [k, k]
    assert "2 programs ran 5 of 8 calls; 3 were recorded" in compiled.explain() and not said(caplog)


def test_truth_values_that_change(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(lambda x: x * 2 if x.sum() > 0 else x - 1, recompile_limit=2)
    for sign in (1, -1, 1, -1, 1):
        compiled(torch.full((2,), float(sign)))
    (message,) = said(caplog)
    assert "a tensor's value decides what is done" in message and "torch.where" in message
    assert "not compiled: a tensor's truth value was another than before, 2 times" in compiled.explain()


def test_explain_lists_guards_on_request() -> None:
    model = torch.compile(torch.nn.Linear(2, 2))
    for _ in range(2):
        model(torch.ones(1, 2))
    first, *rest = model.explain().splitlines()
    assert first == "Linear: 1 program ran 1 of 2 calls; 1 were recorded, 0 ran as Python"
    assert rest[-1].split()[1] == "guards" and not any(line.strip().startswith("if ") for line in rest)
    listed = [line for line in model.explain(guards=True).splitlines() if line.startswith("    if ")]
    assert len(listed) == int(rest[-1].split()[0])


def test_an_op_that_is_not_compiled_is_named_with_the_users_line() -> None:
    @torch.compile(fullgraph=True)
    def drawing(x: Any) -> Any:
        return torch.nn.functional.rrelu(x * 2, training=True)

    with pytest.raises(
        RuntimeError, match=r"fullgraph=True\): .*test_messages.py:\d+: rrelu: numbers were not produced"
    ):
        drawing(torch.ones(2))
