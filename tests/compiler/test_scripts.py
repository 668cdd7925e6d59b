"""The ordinary programs of `tests/programs`, with what they do again and again compiled: bit for bit what they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tests.compiler.drawn import code_of
from tests.compiler.stepped import DECORATOR, stepped
from tests.compiler.test_programs import difference, plain, seen
from tests.programs.runner import SCRIPTS, execute


def described(x: Any, deep: int = 6) -> Any:
    """Return all that can be seen of a value of a program, of objects of its own classes what they hold."""
    if isinstance(x, (tinytorch.Tensor, tinytorch.nn.Module, tinytorch.optim.Optimizer)):
        return seen(x)
    if isinstance(x, (list, tuple)) and deep:
        return type(x).__name__, [described(each, deep - 1) for each in x]
    if isinstance(x, dict) and deep:
        return type(x).__name__, [(str(key), described(each, deep - 1)) for key, each in x.items()]
    if type(x).__module__ == "__main__" and deep:
        return type(x).__name__, described(vars(x), deep - 1) if hasattr(x, "__dict__") else None
    return seen(x) if isinstance(x, (bool, int, float, str, bytes)) or x is None else type(x).__name__


def run(script: Path, text: str, compiled: Any) -> Any:
    """Return what a program printed, warned of and leaves, and the state of the generator."""
    code = code_of(text, f"<steps of {script.name}>")
    found, printed, caught = execute(script, "tinytorch", code, **{DECORATOR: compiled})
    values = {key: value for key, value in found.items() if not key.startswith("_") and key != DECORATOR}
    shown = [
        (key, described(value)) for key, value in values.items() if not callable(value) or hasattr(value, "forward")
    ]
    warned = [str(w.message) for w in caught if "in more than 8 ways" not in str(w.message)]
    state = None if script.stem in UNSEEDED else tinytorch.get_rng_state().numpy().tobytes()
    return NODE.sub("Backward", printed).splitlines(), warned, shown, state


NODE = re.compile(r"\b\w+Backward\d*\b")  # the graph of a compiled function is one node
UNSEEDED = {"devices_types_numpy"}  # the last thing that it does is `torch.seed()`
#: Those in which nothing becomes a program, for what they are about: hooks, errors, data, single statements …
AS_THEY_ARE = {"custom_data", "devices_types_numpy", "hooks", "indexing_tricks", "inplace_pitfalls", "swapped_tensors"}


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_program_does_the_same_compiled(script: Path) -> None:
    made: list[Any] = []

    def compiled(function: Any) -> Any:
        made.append(tinytorch.compile(function))
        return made[-1]

    text = stepped(script.read_text("utf-8"))
    if "bfloat16" in text:
        pytest.importorskip("ml_dtypes")
    expected, found = run(script, text, plain), run(script, text, compiled)
    for what, one, other in zip(("prints", "warnings", "values", "generator"), expected, found, strict=True):
        assert not (where := difference(one, other)), f"{what}: {where}"
    assert script.stem in AS_THEY_ARE or any(part.variants for each in made for part in each.whole())
