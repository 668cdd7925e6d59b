"""Random programs of indexing, run by both libraries: reads, writes, gradients, views, errors.

HYPOTHESIS_PROFILE=long runs 20,000 of each, from a seed that TINYTORCH_SEED sets (see `conftest.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import tinytorch
from tests.programs.drawn import random_programs
from tests.same import Raised, compare, outcome, torch

Draw = Callable[[Any], Any]

#: A key, or a part of it, that each library makes into what stands between the brackets.
Part = tuple[str, Any]


class Case(NamedTuple):
    """A tensor, a key, and what is written.

    Attributes:
        shape, layout, dtype: of the tensor.
        parts: what the key is made of; `bare`: it stands alone, not in a tuple.
        value: the shape of what is written relative to what the key names.
        value_dtype: of it.
    """

    shape: tuple[int, ...]
    layout: str
    dtype: str
    parts: list[Part]
    bare: bool
    value: str
    value_dtype: str


LAYOUTS = ("contiguous", "contiguous", "transposed", "every other", "offset", "expanded")
VALUES = ("same", "same", "number", "scalar", "ones", "fewer", "one more", "leading", "wrong")
INTEGERS = ("int64", "int64", "int64", "int32", "uint8", "int8", "int16")


def index_numbers(draw: Draw, shape: tuple[int, ...], length: int, wild: bool) -> Any:
    """Return nested lists of indices into a dimension; a few `wild` ones are out of range."""
    count = math.prod(shape)
    low, high = (-length - 1, length) if wild else (-length, length - 1)
    if high < low:
        low, high = -1, 1
    numbers = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    return np.array(numbers, np.int64).reshape(shape).tolist()


@st.composite
def cases(draw: Draw) -> Case:
    """Draw a tensor and a key for it, which mostly fits."""
    ndim = draw(st.sampled_from((0, 1, 1, 2, 2, 3, 3, 4)))
    sizes = st.sampled_from((0, 1, 2, 2, 3, 3, 4))
    shape = tuple(draw(st.lists(sizes, min_size=ndim, max_size=ndim)))
    common = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))  # shape of the index tensors
    wild = draw(st.integers(0, 9)) == 0
    parts: list[Part] = []
    at = 0
    dots = False
    for _ in range(draw(st.integers(0, ndim + 1))):
        kind = draw(
            st.sampled_from(
                "int int slice slice slice none dots bool mask mask tensor tensor tensor list array "
                "npint range mask0 int0 npbool odd".split()
            )
        )
        left = shape[at:]
        length = left[0] if left else 1
        if kind == "int" or kind == "npint" or kind == "int0":
            low, high = (-length - 1, length) if wild or not length else (-length, length - 1)
            number = draw(st.integers(low, high))
            extra: Any = None
            if kind == "npint":
                extra = draw(st.sampled_from(("int64", "int32", "int8")))
            if kind == "int0":
                extra = draw(st.sampled_from(INTEGERS))
                number = abs(number) if extra == "uint8" else number
            parts.append((kind, (number, extra)))
            at += 1
        elif kind == "slice":
            bound = st.none() | st.integers(-length - 2, length + 2)
            step = st.sampled_from((None, None, 1, 2, 3, *((0, -1) if wild and left else ())))
            parts.append((kind, (draw(bound), draw(bound), draw(step))))
            at += 1
        elif kind == "dots":
            if dots and not wild:
                continue
            parts.append((kind, None))
            # What follows is at the end.
            if not dots:
                at = draw(st.integers(at, max(at, ndim)))
            dots = True
        elif kind in ("none", "npbool", "bool", "mask0"):
            parts.append((kind, draw(st.booleans())))
        elif kind == "mask":
            wide = draw(st.integers(1, max(1, min(2, len(left)))))
            size = left[:wide] or (1,)
            if wild:
                size = (*size[:-1], size[-1] + 1)
            count = math.prod(size)
            given = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            form = draw(st.sampled_from(("tensor", "tensor", "list", "array", "uint8")))
            parts.append((kind, (np.array(given, bool).reshape(size), form)))
            at += wide
        elif kind in ("tensor", "list", "array"):
            kept = draw(st.integers(0, len(common)))
            size = tuple([1 if draw(st.integers(0, 4)) == 0 else n for n in common[len(common) - kept :]])
            if wild and size:
                size = (*size[:-1], size[-1] + 1)
            form = draw(st.sampled_from(INTEGERS if kind != "list" else ("",)))
            numbers = index_numbers(draw, size, length, wild)
            if form == "uint8":
                numbers = np.abs(numbers).tolist()
            parts.append((kind, (numbers, size, form)))
            at += 1
        elif kind == "range":
            parts.append((kind, draw(st.integers(0, length))))
            at += 1
        elif wild:
            parts.append((kind, draw(st.sampled_from((1.5, "a", {}, (0, 1), [[]])))))
            at += 1
    return Case(
        shape, draw(st.sampled_from(LAYOUTS)),
        draw(st.sampled_from(("float64", "float64", "float32", "float16", "int64", "bool", "uint8"))), parts,
        len(parts) == 1 and draw(st.booleans()), draw(st.sampled_from(VALUES)),
        draw(st.sampled_from(("same", "same", "same", "same", "float32", "int64"))),
    )  # fmt: skip


def made_part(lib: Any, part: Part) -> Any:
    kind, what = part
    if kind == "int":
        return what[0]
    if kind == "npint":
        return np.dtype(what[1]).type(what[0])
    if kind == "int0":
        return lib.tensor(what[0], dtype=getattr(lib, what[1]))
    if kind == "slice":
        return slice(*what)
    if kind == "none":
        return None
    if kind == "dots":
        return ...
    if kind == "bool":
        return what
    if kind == "npbool":
        return np.array(what)
    if kind == "mask0":
        return lib.tensor(what)
    if kind == "mask":
        mask, form = what
        if form == "list":
            return mask.tolist()
        if form == "array":
            return mask
        return lib.tensor(mask.tolist(), dtype=lib.uint8 if form == "uint8" else lib.bool).reshape(mask.shape)
    if kind == "range":
        return range(what)
    if kind == "tensor":
        numbers, size, form = what
        return lib.tensor(numbers, dtype=getattr(lib, form)).reshape(size)
    if kind == "array":
        numbers, size, form = what
        return np.array(numbers, form).reshape(size)
    return what[0] if kind == "list" else what


def made_key(lib: Any, case: Case) -> Any:
    parts = [made_part(lib, part) for part in case.parts]
    return parts[0] if case.bare else tuple(parts)


def numbers(lib: Any, shape: tuple[int, ...], dtype: str, start: int = 1) -> Any:
    count = math.prod(shape)
    return lib.arange(start, start + count).reshape(shape).to(getattr(lib, dtype))


def laid_out(lib: Any, x: Any, layout: str) -> Any:
    """Return what holds the same numbers in another layout; for "expanded", the first of them."""
    if layout == "transposed" and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "every other" and x.dim():
        return lib.stack([x, x], -1)[..., 0]
    if layout == "offset" and x.dim():
        return lib.cat([x, x], 0)[x.shape[0] :]
    if layout == "expanded" and x.dim() and x.shape[0]:
        return x[:1].expand(x.shape)
    return x * 1 if x.dtype.is_floating_point else x.clone()


def weighted(lib: Any, x: Any) -> Any:
    """Return a sum of all elements with different weights."""
    weights = numbers(lib, tuple(x.shape), str(x.dtype).removeprefix("torch."), 2)
    return (x * weights).sum()


def read(lib: Any, case: Case) -> Any:
    """Return what `x[key]` is, whether it is a view, and the gradient of `x`."""
    leaf = numbers(lib, case.shape, case.dtype)
    floating = leaf.dtype.is_floating_point
    if floating:
        leaf.requires_grad_()
    x = laid_out(lib, leaf, case.layout)
    y = x[made_key(lib, case)]
    found = [y, y._is_view(), tuple(y.shape), y.is_contiguous() or not y._is_view()]
    if y.numel() and y._is_view():
        found.append([n for n, length in zip(y.stride(), y.shape, strict=True) if length > 1])
    if floating:
        found.append(lib.autograd.grad(weighted(lib, y), leaf))
    if case.layout != "expanded":
        before = y.detach().clone()
        with lib.no_grad():
            x.fill_(0)
        found.append(bool((before == y.detach()).all()))
    return found


def value_for(lib: Any, case: Case, shape: tuple[int, ...]) -> Any:
    """Return what is written to a part of `shape`."""
    if case.value == "number":
        return 3 if case.dtype in ("int64", "uint8") else True if case.dtype == "bool" else 2.5
    how = {
        "same": shape, "scalar": (), "ones": tuple([1 if k % 2 else n for k, n in enumerate(shape)]),
        "fewer": shape[1:], "one more": (1, *shape), "leading": (1, 1, *shape[-1:]),
        "wrong": (*shape[:-1], 5) if shape else (5,),
    }[case.value]  # fmt: skip
    dtype = case.dtype if case.value_dtype == "same" else case.value_dtype
    return numbers(lib, how, dtype, 50)


def prepared(lib: Any, case: Case) -> tuple[Any, Any, Any, Any]:
    """Return a leaf, the tensor on it that is written to, the key, and the value (a leaf too)."""
    leaf = numbers(lib, case.shape, case.dtype)
    if leaf.dtype.is_floating_point:
        leaf.requires_grad_()
    layout = "contiguous" if case.layout == "expanded" else case.layout
    x = laid_out(lib, leaf, layout)
    key = made_key(lib, case)
    count = math.prod(case.shape)
    try:
        places = lib.arange(count).reshape(case.shape)[key]
    except Exception:  # the write itself shall say so
        return leaf, x, key, numbers(lib, (), case.dtype)
    value = value_for(lib, case, tuple(places.shape))
    twice = len(set(places.flatten().tolist())) < places.numel()
    if twice and isinstance(value, lib.Tensor) and value.numel():
        value = value.reshape(-1)[:1].expand(value.shape).clone()  # which one stays, nobody says
    if isinstance(value, lib.Tensor) and x.requires_grad and value.dtype.is_floating_point:
        value.requires_grad_()
    return leaf, x, key, value


def gradients(lib: Any, x: Any, leaves: list[Any]) -> Any:
    wanted = [each for each in leaves if isinstance(each, lib.Tensor) and each.dtype.is_floating_point]
    if not x.requires_grad:
        return [each.requires_grad for each in wanted]
    return lib.autograd.grad(weighted(lib, x), wanted, allow_unused=True)


def assignment(lib: Any, case: Case) -> Any:
    """Return what `x[key] = value` makes of `x`, and the gradients of both."""
    leaf, x, key, value = prepared(lib, case)
    x[key] = value
    return x, x._version, gradients(lib, x, [leaf, value])


def plain_assignment(lib: Any, case: Case) -> Any:
    """Return what `x[key] = value` makes of `x` where nothing is recorded."""
    _, x, key, value = prepared(lib, case)
    with lib.no_grad():
        x = x.detach().clone()
        x[key] = value.detach() if isinstance(value, lib.Tensor) else value
    return x, x._version


def accumulation(lib: Any, case: Case) -> Any:
    """Return what `x[key] += value` makes of `x`, and the gradients of both."""
    leaf, x, key, value = prepared(lib, case)
    x[key] += value
    return x, gradients(lib, x, [leaf, value])


def putting(accumulate: bool) -> Callable[[Any, Case], Any]:
    """Return the program `x.index_put_(indices, value, accumulate)`."""

    def program(lib: Any, case: Case) -> Any:
        # (PyTorch breaks down over a single value that is true or false.)
        parts = [
            part
            for part in case.parts
            if part[0] in ("tensor", "mask", "int0")
            and part[1][-1] not in ("list", "array")
            and (part[1][-1] != "uint8" or np.ndim(part[1][0]))
        ]
        case = case._replace(parts=parts, bare=False)
        leaf, x, key, value = prepared(lib, case)
        if not key or not isinstance(value, lib.Tensor) or not x.grad_fn:
            return None
        x.index_put_(key, value, accumulate=accumulate)
        return x, x._version, gradients(lib, x, [leaf, value])

    return program


PROGRAMS: dict[str, Callable[[Any, Case], Any]] = {
    "read": read, "assignment": assignment, "plain assignment": plain_assignment, "accumulation": accumulation,
    "index_put_": putting(False), "index_put_ accumulate": putting(True),
}  # fmt: skip


def check(name: str, case: Case) -> None:
    ours, our_warnings = outcome(lambda lib: PROGRAMS[name](lib, case), tinytorch)
    theirs, their_warnings = outcome(lambda lib: PROGRAMS[name](lib, case), torch)
    if isinstance(theirs, Raised) and "got mask with dtype unsigned char" in theirs.text:
        return  # PyTorch reads by bytes, and writes by them, but for one number
    if isinstance(ours, Raised) and ours.kind == "IndexError" and 0 in case.shape:
        return  # PyTorch looks at indices only if something is indexed
    if isinstance(theirs, Raised) and "IndexPutBackward0 returned an invalid gradient" in theirs.text:
        return  # PyTorch writes values of more dimensions, and then fails in backward
    if isinstance(ours, Raised) and isinstance(theirs, Raised):
        if ours.kind in ("ValueError", "TypeError") and theirs.kind == "IndexError":
            return  # both are wrong: a step or a word, and an index or the number of indices
        if ours.kind == "IndexError" and "a leaf Variable that requires grad" in theirs.text:
            return  # both are wrong: a leaf must not be written to, and an index has a wrong dtype
        assert ours.kind == theirs.kind, f"{ours!r} against {theirs!r}"
        return
    compare(ours, theirs, 1e-12, 1e-12)
    if not name.startswith("index_put_"):
        assert set(our_warnings) == set(their_warnings), f"{our_warnings} against {their_warnings}"


@random_programs(1500, st.sampled_from(sorted(PROGRAMS)), cases())
def test_random_indexing_agrees(name: str, case: Case) -> None:
    check(name, case)
