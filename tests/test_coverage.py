"""docs/coverage.md is up to date; the functions that it lists can be called, with PyTorch's parameter names."""

from __future__ import annotations

import inspect
import re
from functools import cache
from itertools import chain
from typing import Any

import pytest

from scripts import make_coverage as coverage
from tests.oracle import module
from tinytorch.core import declaration
from tinytorch.core.declaration import NUMPY, NUMPY_DIMS
from tinytorch.ops.register import Function

torch = module()
#: The version of PyTorch for which the page is written; other versions have other names.
of_this_version = pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the table is of PyTorch 2.13")


@cache
def sections() -> Any:
    return coverage.survey()


def had() -> list[tuple[str, str]]:
    return [(name, each) for name, section in sections().items() for each in section.have]


def both(section: str, name: str) -> tuple[Any, Any]:
    """Return the objects with a name in tinytorch and in PyTorch."""
    ours, theirs = (coverage.resolve(library, section) for library in ("tinytorch", "torch"))
    return getattr(ours, name), getattr(theirs, name)


# Parameter names -----------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    """Return the names in the text of a parameter list such as "input, dim=None, *, out=None"."""
    depth, parts, part = 0, [], ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    names = []
    for each in [*parts, part]:
        words = re.sub(r"[=:].*", "", each, flags=re.DOTALL).split()
        if words and re.fullmatch(r"[a-z_][A-Za-z_0-9]*", words[-1]):
            names.append(words[-1])
    return names


def documented(name: str, doc: str) -> set[str]:
    """Return the parameter names in the signatures of a docstring."""
    found: set[str] = set()
    for match in re.finditer(rf"^\s*(?:\.\. function:: )?{re.escape(name)}\(", doc, re.MULTILINE):
        if doc[: match.start()].count("\n") > 3 and ".. function::" not in match.group():
            continue  # an example further down
        depth, end = 1, match.end()
        while depth and end < len(doc):
            depth += (doc[end] == "(") - (doc[end] == ")")
            end += 1
        found.update(split(doc[match.end() : end - 1]))
    return found


def in_schemas(section: str, name: str) -> set[str]:
    """Return the parameters of an operator's overloads that take tensors and create their results."""
    prefix = {"torch.linalg": "linalg_", "torch.special": "special_"}.get(section, "")
    found: set[str] = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}"):
        arguments = schema.arguments
        if any("Tensor" in str(each.type) for each in arguments) and not any(each.is_out for each in arguments):
            found |= {each.name for each in arguments}
    return {"input" if each == "self" else each for each in found}


def parameters_of(section: str, name: str) -> set[str]:
    """Return the keywords of PyTorch's function, as far as they are known."""
    theirs = both(section, name)[1]
    method = section == "torch.Tensor"
    found = documented(name, theirs.__doc__ or "")
    operator = in_schemas(section, name)
    try:
        signature = inspect.signature(theirs)
    except (TypeError, ValueError):
        names = operator or found
    else:
        names = {
            each.name
            for each in signature.parameters.values()
            if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        }
    return {n for n in names if not n.startswith("_")} - ({"self", "input"} if method else {"self"})


def takes(function: Any, parameter: str) -> bool:
    """Return whether a function of tinytorch accepts a keyword."""
    if isinstance(function, Function):
        if parameter == "out" and function.rule is not None:
            return True
        return NUMPY.get(parameter) in function.names or takes(function.raw, parameter)
    code = getattr(function, "__code__", None)
    made = getattr(function, "op", None)
    if made is not None and code is not None:
        if code.co_flags & inspect.CO_VARKEYWORDS:
            known = {"input", *made.position}
            return parameter in known or made.position.get(declaration.own_name(parameter), 0) > 0  # (not `self`)
        return parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return True
    if parameter in getattr(function, "also", ()):
        return True
    found = parameters.get(parameter, parameters.get(NUMPY_DIMS.get(parameter)))
    return found is not None and found.kind is not found.POSITIONAL_ONLY


#: By parameter, the functions that need not accept it by this name.
KNOWN = {
    # TorchScript's overloads for lists and numbers, which are not accessible from Python.
    "a": r"torch\.Tensor\.(eq|ne)", "b": r"torch(\.Tensor)?\.(eq|ne)", "reverse": r"torch(\.Tensor)?\.sort",
    # Parameters of CUDA kernels only.
    "out_dtype": r"torch(\.Tensor)?\.(addmm|baddbmm|bmm|mm)", "cudnn_enable": r"torch\.layer_norm",
    # Documented, but not accepted by PyTorch itself, whose functions have positional parameters.
    "ndarray": r"torch\.from_numpy", "orig_func": r"torch\.(autograd\.)?enable_grad",
    # Undocumented parameters.
    "generator": r"torch\.(nn\.functional\.)?rrelu_?", "input_scale": r"torch\.nn\.functional\.elu_",
    "scale": r"torch\.nn\.functional\.elu_",
    "layout": r"torch\.Tensor\.to", "pin_memory": r"torch\.Tensor\.to",
    # Overloads for a number in place of a tensor.
    "scalar": r"torch\.result_type", "tensor": r"torch\.(result_type|to_dlpack)",
    # Documented by another name or by a type.
    "int": r"torch\.set_num_\w*threads",
    "src": r"torch\.Tensor\.copy_",
    "mode": r"torch\.set_flush_denormal", "qtensor": r"torch\.Tensor\.dequantize",
    "qtensors": r"torch\.Tensor\.dequantize", "tensors": r"torch\.Tensor\.dequantize",
    # Methods, whose first argument is `self`; functions accept it by the name `input`.
    "input": r"torch\.(detach|\w+_)",
}  # fmt: skip


def differences() -> dict[str, list[str]]:
    """Return, by parameter, the functions that should accept it as a keyword but do not."""
    found: dict[str, list[str]] = {}
    for section, name in had():
        ours = both(section, name)[0]
        for parameter in sorted(parameters_of(section, name)):
            if not takes(ours, parameter):
                found.setdefault(parameter, []).append(f"{section}.{name}")
    return found


def positions_of_theirs(section: str, name: str) -> list[str]:
    """Return PyTorch's positional parameters, from the signature or the first signature in the docstring."""
    theirs = both(section, name)[1]
    try:
        found = by_position(inspect.signature(theirs))
    except (TypeError, ValueError):
        pattern = rf"^\s*(?:\.\. function:: )?{re.escape(name)}\((.*?)\)\s*(->|$)"
        match = re.search(pattern, theirs.__doc__ or "", re.MULTILINE | re.DOTALL)
        found = split(re.sub(r"\*.*", "", match.group(1), flags=re.DOTALL)) if match else []
    return [each for each in found if each != "self"]


def by_position(signature: inspect.Signature) -> list[str]:
    parameters = signature.parameters.values()
    return [each.name for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]


def positions_of_ours(section: str, name: str) -> list[str]:
    ours = both(section, name)[0]
    made = getattr(ours, "op", None)
    try:
        found = by_position(inspect.signature(ours)) if made is None else made.arguments[: made.positional]
    except (TypeError, ValueError):
        return []
    found = [declaration.PUBLIC.get(each, each) for each in found]
    return found[1:] if section == "torch.Tensor" else found


# The tests -----------------------------------------------------------------------------------------


@of_this_version
def test_the_table_is_fresh() -> None:
    assert not coverage.stale(), "run scripts/make_coverage.py"


def test_each_name_is_of_one_kind() -> None:
    for section in sections().values():
        names = [*section.have, *section.missing, *chain(*section.left_out.values())]
        assert sorted(names) == sorted(set(names)), section.name


def test_each_pattern_of_a_family_leaves_out_names() -> None:
    for family in coverage.FAMILIES:
        for where, pattern in family.patterns:
            assert any(
                where in ("", name) and pattern.fullmatch(each)
                for name, section in sections().items()
                for each in section.left_out.get(family.title, ())
            ), f"{family.title}: {pattern.pattern}"


def test_a_name_that_only_refuses_is_not_there() -> None:
    def kind(x: int) -> int:
        if x > 0:
            return x
        raise NotImplementedError

    def stub(x: int) -> int:
        raise NotImplementedError(f"no {x}")

    class Stub:
        def __init__(self) -> None:
            raise NotImplementedError

    assert not coverage.refuses(kind) and coverage.refuses(stub) and coverage.refuses(Stub)
    assert not coverage.refuses(stub, "ValueError") and not coverage.refuses(len)


def test_what_is_there_can_be_called_and_has_a_docstring() -> None:
    for section, name in had():
        ours = both(section, name)[0]
        assert callable(ours) and (ours.__doc__ or "").strip(), f"{section}.{name}"


@of_this_version
def test_parameters_have_pytorchs_names() -> None:
    found = differences()
    new = {
        parameter: functions
        for parameter, names in found.items()
        if (functions := [n for n in names if not re.fullmatch(KNOWN.get(parameter, "-"), n)])
    }
    assert not new, new
    assert not set(KNOWN) - set(found), f"taken by now: {sorted(set(KNOWN) - set(found))}"


@of_this_version
def test_parameters_have_pytorchs_order() -> None:
    for section, name in had():
        theirs, ours = positions_of_theirs(section, name), positions_of_ours(section, name)
        if name == "new_empty_strided":  # documented in another order than the actual one
            continue
        common = [each for each in theirs if each in ours]
        assert common == [each for each in ours if each in theirs], f"{section}.{name}"
