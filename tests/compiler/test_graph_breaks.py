"""Graph breaks: functions of which a statement cannot be compiled do the same in parts, which run as programs."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tests.compiler import broken
from tests.compiler.test_programs import difference, seen
from tinytorch import nn
from tinytorch.compiler.compiled import Compiled

LOG: list[Any] = []
#: By name: a function that makes the function or module, what a call is given, and how many runs of programs there are
#: at least in ten calls.
CASES: dict[str, tuple[Callable[[], Any], Callable[[int], tuple[Any, ...]], int]] = {}


def one(k: int) -> tuple[Any, ...]:
    return (torch.linspace(-1, 1, 12).view(3, 4).add(k % 3).requires_grad_(),)


def case(given: Callable[[int], tuple[Any, ...]] = one, least: int = 5) -> Callable[[Any], Any]:
    """Note a case: a class of modules, or a function that returns what is compiled."""

    def note(make: Any) -> Any:
        CASES[make.__name__] = make, given, least
        return make

    return note


def of(function: Any) -> Callable[[], Any]:
    """Return a function that returns a function."""

    @functools.wraps(function)
    def make() -> Any:
        return function

    return make


def outcome(make: Callable[[], Any], given: Callable[[int], tuple[Any, ...]], compiles: bool, calls: int = 10) -> Any:
    """Return all that can be seen of some calls, and what was called."""
    LOG.clear()
    torch.manual_seed(0)
    random.seed(0)
    function = make()
    parameters = list(function.parameters()) if isinstance(function, nn.Module) else []
    called = Compiled(function) if compiles else function
    found: list[Any] = []
    for k in range(calls):
        args = given(k)
        try:
            result = called(*args)
        except Exception as error:
            found.append((type(error).__name__, str(error)))
            continue
        whole = result if isinstance(result, tuple) else (result,)
        with_graph = [x for x in whole if isinstance(x, torch.Tensor) and x.requires_grad]
        if with_graph:
            sum((x * torch.arange(1.0, x.numel() + 1).view(x.shape)).sum() for x in with_graph).backward()
        found.append((seen(result), [seen(x) for x in args], [seen(p) for p in parameters], str(LOG), random.random()))
    return found, called


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def before(self, x: Any) -> Any:
        return self.linear(x).relu()


@case()
class PrintsInForward(Base):
    def forward(self, x: Any) -> Any:
        y = self.before(x)
        print(tuple(y.shape))
        return (y * x).sum(), y


@case()
class UsesNumPy(Base):
    def forward(self, x: Any) -> Any:
        y = self.before(x) * 2
        mask = np.clip(y.detach().numpy(), 0, 1)
        z = y * torch.from_numpy(mask)
        return z.sin().sum()


@case()
class LogsAnItem(Base):
    def forward(self, x: Any) -> Any:
        loss = self.before(x).square().mean()
        LOG.append(loss.item())
        return loss * 2 + x.sum()


@case()
class DecidesByAnItem(Base):
    def forward(self, x: Any) -> Any:
        y = self.before(x)
        if y.detach().sum().item() > 8:
            y = y.sin() * 2
            z = y.cos()
        else:
            z = y.exp() - 1
        return z * y


@case()
class BranchesAtRandom(Base):
    def forward(self, x: Any) -> Any:
        y = self.before(x)
        if random.random() > 0.5:
            y = y.sin() * 2
            LOG.append("much")
            y = y.tanh() + 1
        else:
            y = y.cos() * 3
        return y + x


@case()
class AppendsToItself(Base):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def forward(self, x: Any) -> Any:
        y = self.before(x) + 1
        self.kept.append(y.detach().clone())
        y = y / len(self.kept)
        return y.exp().sum()


@case()
class SetsAnAttribute(Base):
    def forward(self, x: Any) -> Any:
        y = self.before(x) * 2
        self.calls = self.calls + 1
        LOG.append(self.calls)
        return y.sin() * x


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x = self.linear(x).sigmoid()
        LOG.append(float(x.detach().sum()))
        return x * 3 + 1


class Middle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.inner = nn.Linear(4, 4), Inner()

    def forward(self, x: Any) -> Any:
        y = self.first(x).tanh() * 2
        return self.inner(y) + x


@case()
class ThreeLevelsDown(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), Middle(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        y = self.body(x)
        y = y * y + x
        return self.head(y)


@case(least=50)
class LoopsOverLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(10)])

    def forward(self, x: Any) -> Any:
        outs = []
        for k, layer in enumerate(self.layers):
            x = layer(x).tanh()
            LOG.append(k)
            if k == 8:
                continue
            x = x * 0.9 + 0.1
            outs.append(x)
        return x, torch.stack(outs).sum()


@case()
class UsesWith(Base):
    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            y = self.before(x) * 2
            LOG.append(y.requires_grad)
            z = y.sin() + 1
        with contextlib.suppress(ZeroDivisionError):
            z = z * self.linear(x)
            LOG.append(1 // (len(LOG) % 2))
            z = z + 1
        return z * x


@case()
class UsesTry(Base):
    def forward(self, x: Any) -> Any:
        try:
            y = self.before(x) * 2
            LOG.append(len(LOG))
            if len(LOG) % 3 == 0:
                raise ValueError("three")
            y = y.sin() * 2
        except ValueError as error:
            LOG.append(str(error))
            y = x * 2
        else:
            y = y + 1
        finally:
            LOG.append("end")
        return y.cos() + x


@case()
class ReturnsEarly(Base):
    def forward(self, x: Any) -> Any:
        y = self.before(x)
        if not self.training:
            return y
        LOG.append(1)
        if len(LOG) % 3 == 0:
            y = y.exp() * 2
            return y, y.sum()
        y = y.sin() + 1
        if len(LOG) % 2:
            return y * x
        return (y + x).sum()


@case()
class CallsSuper(Base):
    def before(self, x: Any) -> Any:
        y = super().before(x) * 2
        LOG.append("before")
        return super().before(y) + x

    def forward(self, x: Any) -> Any:
        return self.before(x).sin()


@case()
class HasHooks(Base):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.inner.register_forward_hook(lambda module, args, result: LOG.append("hook") or result * 2)
        self.inner.register_forward_pre_hook(lambda module, args: (args[0] + 1,))

    def forward(self, x: Any) -> Any:
        return self.inner(self.before(x) * 2).cos()


@case(lambda k: (*one(k), 7))
@of
def arguments(x: Any, *args: Any, scale: float = 2.0, **options: Any) -> Any:
    def inner(z: Any, times: int = 2) -> Any:
        return z * times + args[0]

    y = inner(x).sin()
    LOG.append((args, options))
    double = lambda z: z * scale  # noqa: E731
    y = double(y) + sum(options.values())
    first, *rest = y.unbind()
    del y
    LOG.append(len(rest))
    return inner(first, 3).sum() + (total := rest[0].exp().sum()), total


def numbers(x: Any) -> Iterator[Any]:
    for k in range(3):
        LOG.append(k)
        yield x * k


@case()
@of
def generators(x: Any) -> Any:
    y = x.sin() * 2
    total = torch.zeros(())
    for each in numbers(y):
        total = total + each.sum()
    return total * y


@case(lambda k: (torch.ones(2 + k % 3, 4).requires_grad_(),))
@of
def several_shapes(x: Any) -> Any:
    y = x.sin() * 2
    LOG.append(tuple(y.shape))
    return y.cos().sum() + x


@case(least=2)
@of
def not_bound(x: Any) -> Any:
    if len(LOG) % 3:
        y = x * 2 + 1
    LOG.append(1)
    return y.sin() * 2


@case()
@of
def masks(x: Any) -> Any:
    y = x.sin() * 2
    z = y[y > 0.5]
    return z.cos().sum() + y.sum()


@case()
@of
def closures(x: Any) -> Any:
    calls = 0

    def counted(z: Any) -> Any:
        nonlocal calls
        calls += 1
        return z * calls

    y = counted(x).sin()
    LOG.append(calls)
    return counted(y) + x


CASES["closures"] = CASES["closures"][0], one, 0  # (a variable that a closure assigns is not copied)


@case()
@of
def loops(x: Any) -> Any:
    n = 0
    while True:
        x = x.sin() * 2
        n += 1
        LOG.append(n)
        if n % 2:
            x = x + 1
            continue
        x = x.exp()
        if x.sum() > 1e9 or n > 3:
            break
    else:
        LOG.append("never")
    return x, n


@case()
@of
def comprehensions(x: Any) -> Any:
    scale = math.sqrt(2.0)
    rows = [row * scale for row in x.unbind()]
    LOG.append([row.shape for row in rows])
    return torch.stack([row.sin() * scale for row in rows]).sum(), {k: row for k, row in enumerate(rows)}


@case()
@of
def views(x: Any) -> Any:
    y = (x * 2).view(2, 6)
    a, b = y.chunk(2, 1)
    LOG.append(a.shape)
    c = a.transpose(0, 1) * b.T
    LOG.append(c.shape)
    return c.sum(), a, x.view(-1)


@case()
@of
def writes(x: Any) -> Any:
    y = x * 2
    y[0] = 1
    LOG.append(y._version)
    y.mul_(x)
    z = y.sin() * 2
    LOG.append(y._version)
    z.add_(1)
    return z, y


def wide(k: int) -> tuple[Any, ...]:
    torch.manual_seed(k)
    return torch.randn(97, 8).requires_grad_(), torch.randn(8).requires_grad_(), torch.randn(97, 8)


@case(wide)
@of
def sums_of_layouts(x: Any, b: Any, w: Any) -> Any:
    h, q = x + b, x * 3
    LOG.append(1)
    u = (h * w).sum()
    v = (h.T.sin() * w.T.contiguous()).sum()
    LOG.append(2)
    return (h.T.cos() * w.T.contiguous()).sum() * u + v + (q * q).sum()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        LOG.append("backward")
        return g * 3 * ctx.saved_tensors[0] ** 2


@case()
@of
def own_functions(x: Any) -> Any:
    y = x.sin() * 2
    z = Cube.apply(y)
    return (z.cos() + y).sum()


@case()
@of
def imports(x: Any) -> Any:
    import math as m
    from math import floor

    y = x.sin() * m.pi
    LOG.append(floor(m.e))
    return y.cos() * floor(2.5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_parts_do_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, given, least = CASES[name]
    expected, _ = outcome(make, given, False)
    printed = capsys.readouterr().out
    found, compiled = outcome(make, given, True)
    assert not (where := difference(expected, found)), f"{where}\n{compiled.explain()}"
    assert capsys.readouterr().out == printed
    runs = sum(variant.runs for part in compiled.whole() for variant in part.variants)
    assert runs >= least, compiled.explain()
    if least:
        assert " graph break" in compiled.explain().splitlines()[0]
    assert not [line for line in compiled.explain().splitlines() if line.startswith("not compiled: NameError")]


def test_a_training_step_that_logs() -> None:
    def train(compiles: bool) -> tuple[Any, Any]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        losses: list[float] = []

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            losses.append(loss.item())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss.detach()

        called: Any = Compiled(step) if compiles else step
        found = [seen(called(torch.randn(5, 4), torch.randn(5, 1))) for _ in range(9)]
        return (found, losses, [seen(p) for p in model.parameters()]), called

    expected, found = train(False), train(True)
    assert not difference(expected[0], found[0])
    assert [len(part.variants) for part in found[1].whole() if part.variants] == [1, 1], found[1].explain()
    assert "3 graph breaks" in found[1].explain() or "2 graph breaks" in found[1].explain()


def test_effects_happen_once_and_in_order() -> None:
    def f(x: Any) -> Any:
        LOG.append("first")
        y = x.sin() * 2
        LOG.append("second")
        z = y.cos() * 3
        LOG.append("third")
        return z + y

    LOG.clear()
    compiled = Compiled(f)
    for _ in range(8):
        compiled(torch.ones(3))
    assert LOG == ["first", "second", "third"] * 8
    assert sum(variant.runs for part in compiled.whole() for variant in part.variants) >= 8


def test_programs_that_there_are_stay_in_use() -> None:
    def f(x: Any, speaks: bool) -> Any:
        y = x.sin() * 2
        if speaks:
            print(1)
        return y.cos() * 2

    compiled = Compiled(f)
    x = torch.ones(3)
    for speaks in (False, False, True, True, True, True, False, False):
        assert compiled(x, speaks).tolist() == f(x, speaks).tolist()
    assert compiled.variants[0].runs == 3 and compiled.split is not None


def test_a_whole_function_that_may_be_compiled_has_no_graph_break() -> None:
    compiled = Compiled(lambda x: x.sin() * 2)
    for _ in range(3):
        compiled(torch.ones(3))
    assert compiled.split is None and not compiled.parts


def test_an_error_of_the_program_is_no_graph_break() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        LOG.append(1)
        if len(LOG) > 5:
            raise KeyError("own")
        return y @ x

    LOG.clear()
    compiled = Compiled(f)
    for _ in range(5):
        compiled(torch.ones(3, 3))
    with pytest.raises(KeyError, match="own"):
        compiled(torch.ones(3, 3))
    LOG.clear()
    with pytest.raises(RuntimeError, match="shapes"):
        compiled(torch.ones(2, 3))
    assert LOG == [1]


def logging_between(x: Any) -> Any:
    y = x.sin() * 2
    LOG.append(1)
    return y * 2


def test_reset_forgets_the_parts() -> None:
    compiled = Compiled(logging_between)
    for _ in range(4):
        compiled(torch.ones(3))
    assert compiled.parts
    torch.compiler.reset()
    assert not compiled.parts and compiled.split is None and not compiled.failed
    for _ in range(4):
        assert compiled(torch.ones(3)).tolist() == logging_between(torch.ones(3)).tolist()


def test_nothing_is_compiled_while_a_mode_looks_on() -> None:
    compiled = Compiled(logging_between)
    for _ in range(4):
        compiled(torch.ones(3))
    ran = [variant.runs for part in compiled.whole() for variant in part.variants]
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(3))
    found = torch.func.jvp(compiled, (torch.ones(3),), (torch.ones(3),))
    assert str(found) == str(torch.func.jvp(logging_between, (torch.ones(3),), (torch.ones(3),)))
    assert [variant.runs for part in compiled.whole() for variant in part.variants] == ran


def test_what_needs_no_graph_break() -> None:
    logger = logging.getLogger("tests")

    def f(x: Any) -> Any:
        torch._assert(x.ndim == 2, "two dimensions")
        logger.debug("here")
        if logger.isEnabledFor(10):
            logger.log(10, "there")
        if torch.jit.is_scripting() or torch.jit.is_tracing() or torch.onnx.is_in_onnx_export():
            return x
        assert isinstance(x, torch.Tensor) and x.is_floating_point() and not torch.is_complex(x)
        if torch.is_grad_enabled() and callable(f) and hasattr(x, "shape") and torch.compiler.is_compiling():
            return x.sin() * 2
        return x.sin() * 2

    compiled = Compiled(f)
    for _ in range(3):
        compiled(torch.ones(2, 2))
    assert compiled.variants and compiled.variants[0].runs == 2, compiled.explain()


def test_messages_are_shown_in_each_call(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tests")

    def f(x: Any) -> Any:
        y = x.sin() * 2
        logger.warning("the sum of %d", x.numel())
        y = y.cos() * 2
        warnings.warn("a warning", stacklevel=1)
        return y.exp() * 2

    expected = []
    for called in (f, compiled := Compiled(f)):
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(8):
                called(torch.ones(3))
        own = [record for record in caplog.records if record.name == "tests"]
        # (In a call that is recorded they come from a line of the tracer.)
        places = [(own[-1].pathname, own[-1].lineno), (caught[-1].filename, caught[-1].lineno)]
        expected.append(([record.getMessage() for record in own], [str(w.message) for w in caught], places))
    assert expected[0] == expected[1] and len(expected[0][1]) == 8
    assert sum(variant.runs for part in compiled.whole() for variant in part.variants) >= 10


def test_a_part_that_begins_at_the_line_with_a_variable_that_may_be_unbound() -> None:
    def f(x: Any, given: bool) -> Any:
        if given:
            shown = []
        y = x.sin()
        LOG.append(y.sum().item())
        (shown if given else LOG).append(y.sum().item())
        return y.cos() * 2

    compiled = Compiled(f)
    for _ in range(8):
        assert torch.equal(compiled(torch.ones(3), False), f(torch.ones(3), False))
    assert len([*compiled.whole()]) < 8


def test_what_computes_nothing_with_tensors_runs_as_python() -> None:
    class Meter:
        total = 0.0

        def update(self, value: float) -> None:
            self.total += value
            LOG.append(self.total)

    meter = Meter()

    def f(x: Any) -> Any:
        y = x.sin()
        meter.update(y.sum().item())
        return y.cos()

    compiled = Compiled(f)
    for _ in range(9):
        compiled(torch.ones(3))
    (update,) = [part for part in compiled.whole() if part._name().endswith("update")]
    assert update.failed and update.split is None and not update.graph_breaks
    assert meter.total == pytest.approx(9 * 3 * math.sin(1)) and len(LOG) >= 9


def test_a_gradient_of_another_layout() -> None:
    """A program of a backward pass is for a layout of the gradient: the order of sums depends on it."""

    def f(x: Any) -> Any:
        return (x * 2).view(8, 6).sin() @ torch.ones(6, 5)

    compiled = Compiled(f)
    for k in range(6):
        found = []
        for called in (f, compiled):
            x = torch.linspace(0, 1, 48).requires_grad_()
            y = called(x)
            ((y.T * torch.linspace(0, 1, 40).view(5, 8)).transpose(0, 1)[:, [0, 2, 1, 3, 4]].exp()).sum().backward()
            found.append(seen(x))
        assert not difference(*found), k
    assert len(compiled.variants) == 1 and compiled.variants[0].runs >= 2


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.filterwarnings("ignore")
def test_functions_that_are_drawn(seed: int) -> None:
    text = broken.function(seed)
    assert not (found := broken.failure(text)), f"{found}\n{text}"
