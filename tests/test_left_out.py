"""A name of PyTorch that is left out says so, and why; `hasattr` of it is False."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tinytorch.ops import left_out, register

MODULES = ["torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"]


def module(path: str) -> Any:
    """Return tinytorch's module of this name of PyTorch's."""
    return importlib.import_module(path.replace("torch", "tinytorch", 1))


def test_names_that_are_left_out() -> None:
    count = 0
    for path in MODULES:
        for reason, names in left_out.NAMES.get(path, {}).items():
            for name in names.split():
                assert not hasattr(module(path), name)
                with pytest.raises(AttributeError) as error:
                    getattr(module(path), name)
                assert str(error.value).startswith(f"{path}.{name} is not in tinytorch ") and reason in str(error.value)
                assert error.value.name == name
                count += 1
    assert count > 100


def test_the_message_of_a_name_with_a_reason() -> None:
    with pytest.raises(AttributeError, match=r"^torch.QInt8Storage is not in tinytorch \S+: there are no quantized "):
        tinytorch.QInt8Storage  # noqa: B018
    with pytest.raises(AttributeError, match=r"^torch.nn.functional.scaled_mm is not in tinytorch"):
        tinytorch.nn.functional.scaled_mm  # noqa: B018


@pytest.mark.parametrize("path", MODULES)
def test_names_that_pytorch_has_not_either(path: str) -> None:
    ours = module(path)
    with pytest.raises(AttributeError, match=f"^module '{ours.__name__}' has no attribute 'no_such_name'$"):
        ours.no_such_name  # noqa: B018
    assert not hasattr(ours, "no_such_name") and getattr(ours, "no_such_name", 3) == 3


@pytest.mark.skipif(not (Path(tinytorch.__file__).parents[1] / "scripts").exists(), reason="this is not a checkout")
def test_a_declared_name_that_no_table_has_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(register.functions, "new_name", None)
    with pytest.raises(AttributeError, match=r"^torch.new_name is declared, but .* run scripts/make_names.py$"):
        tinytorch.new_name  # noqa: B018


def test_the_error_can_be_pickled_and_the_table_is_read_when_it_is_needed() -> None:
    error = pickle.loads(pickle.dumps(left_out.error("tinytorch", "QInt8Storage")))
    assert "torch.QInt8Storage is not in tinytorch" in str(error)
    program = "import sys, tinytorch; tinytorch.ones(2); print('tinytorch.ops.left_out' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
