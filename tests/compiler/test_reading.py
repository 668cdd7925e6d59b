"""What people write around their layers: each program means the same compiled, and becomes a program of its own.

Each case takes a decorator and yields results, while it changes what the compiled function reads; `programs` says
how many programs the function becomes, so that a construct that is no longer followed is noticed.
"""

from __future__ import annotations

import argparse
import collections
import contextvars
import copy  # noqa: F401  (cases use it)
import dataclasses
import functools
import weakref  # noqa: F401
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np  # noqa: F401
import pytest

import tinytorch as torch
from tests.compiler.drawn import defined
from tests.compiler.test_programs import difference, made, outcome, plain
from tinytorch import nn


@dataclasses.dataclass
class Output:
    logits: Any
    hidden: Any = None
    names: list[str] = dataclasses.field(default_factory=list)


class Fields(collections.OrderedDict[str, Any]):
    """A dictionary that also has its items as attributes, and sets both, as the outputs of language models do."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Settings:
    """A configuration with names for its attributes, and computed ones."""

    names: ClassVar[dict[str, str]] = {"width": "hidden"}

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(super().__getattribute__("names").get(name, name))

    @property
    def double(self) -> Any:
        return self.hidden * 2


class Levels:
    """A container with methods in Python."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __iter__(self) -> Any:
        yield from self.values

    def __getitem__(self, k: Any) -> Any:
        return self.values[k]

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, x: Any) -> bool:
        return x in self.values

    def __call__(self, x: Any) -> Any:
        return x * self.values[0]


class Cache:
    def __init__(self, scale: float) -> None:
        self.scale, self.layers = scale, []

    def update(self, x: Any) -> Any:
        self.layers.append(x)
        return x * self.scale

    @property
    def first(self) -> Any:
        return self.layers[0]


def documented() -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        """A text that is indented.

        Its lines are a part of the function's constants.
        """
        return x * 2

    return f


VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("variable", default=1.0)


@functools.lru_cache
def cached(k: int) -> bool:
    return k > 1


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * torch.sigmoid(x * scale)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x * ctx.scale)
        return g * (s + x * ctx.scale * s * (1 - s)), None


class Same(torch.autograd.Function):
    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x, y + 1

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        return g, None


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


#: The cases; in each, the functions f, g, h and step without a decorator are compiled (see `test_programs.made`).
TEXT = r"""
def a_text_inside_a_function(compiled, programs=1):
    f = compiled(documented())
    for _ in range(3): yield f(torch.randn(2))
def imports(compiled, programs=1):
    def f(x):
        import math
        from tinytorch.nn import functional as F
        from tinytorch.nn.functional import relu
        return relu(x) * math.pi + F.relu(-x)
    for _ in range(3): yield f(torch.randn(4))
def try_and_finally(compiled, programs=1):
    table = {"a": 2.0}
    def f(x):
        try:
            try:
                scale = table["b"]
            except KeyError:
                scale = 3.0
            return x * scale
        finally:
            x = x + 1
    for _ in range(3): yield f(torch.randn(2))
def an_absent_key_that_comes(compiled, programs=2):
    table = {"a": 2.0}
    def f(x):
        try:
            return x * table["b"]
        except KeyError:
            return x
    for k in range(4):
        if k == 2: table["b"] = 5.0
        yield f(torch.ones(2))
def an_absent_attribute_that_comes(compiled, programs=2):
    settings = Settings(hidden=3.0)
    def f(x):
        try:
            return x * settings.more
        except AttributeError:
            return x * getattr(settings, "other", 7.0)
    for k in range(4):
        if k == 2: settings.more = 5.0
        yield f(torch.ones(2))
def an_error_of_a_step_after_random_numbers(compiled, programs=1):
    table = torch.randn(3, 2)
    def f(x, i):
        x = torch.nn.functional.dropout(x)
        try:
            return torch.nn.functional.embedding(i, table)
        except IndexError:
            return x
    for k in (0, 1, 3, 2): yield f(torch.ones(2), torch.tensor([k]))
def a_configuration(compiled, programs=2):
    settings = Settings(hidden=3.0)
    def f(x): return x * settings.width + settings.double + (1 if hasattr(settings, "double") else 0)
    for k in range(4): settings.hidden = 3.0 + k // 2; yield f(torch.ones(2))
def a_copied_configuration(compiled, programs=2):
    settings = Settings(hidden=3.0, more={"k": [1.0]})
    def f(x):
        own = copy.deepcopy(settings)
        own.extra = 2.0
        return x * own.hidden * own.extra + own.more["k"][0]
    for k in range(4): settings.more["k"][0] = 1.0 + k // 2; yield f(torch.ones(2)), hasattr(settings, "extra")
def a_data_class(compiled, programs=1):
    def f(x):
        out = Output(x * 2, hidden=(x, x + 1), names=["a"])
        out.names.append("b")
        return out
    for _ in range(3): out = f(torch.randn(2)); yield type(out), out.logits, out.hidden, out.names
def a_dictionary_with_attributes(compiled, programs=1):
    def f(x):
        out = Fields()
        out["loss"] = (x * x).sum()
        out["logits"] = x * 2
        return out
    for _ in range(3):
        x = torch.randn(2, requires_grad=True)
        out = f(x)
        out.loss.backward()
        yield type(out), list(out), out.loss is out["loss"], out.logits, x.grad
def an_object_of_ones_own(compiled, programs=2):
    box = [2.0]
    def f(x):
        cache = Cache(box[0])
        for each in x:
            x = cache.update(each) + x
        return x, cache, cache.first
    for k in range(4):
        box[0] = 2.0 + k // 2
        x, cache, first = f(torch.randn(2, 2))
        yield x, cache.scale, cache.layers, first, first is cache.layers[0]
def containers_in_python(compiled, programs=2):
    levels = Levels([2.0, 3.0])
    def f(x):
        for k, each in enumerate(levels):
            x = x * each + k
        return levels(x) * levels[1] * len(levels) + (1 if 3.0 in levels else 0)
    for k in range(4): levels.values[0] = 2.0 + k // 2; yield f(torch.ones(2))
def a_generator(compiled, programs=2):
    scales = [1.0, 2.0]
    def scaled(x):
        for each in scales:
            yield (x * each)
    def f(x): return sum(scaled(x)), [each + 1 for each in scaled(x)]
    for k in range(4): scales[0] = 1.0 + k // 2; yield f(torch.ones(2))
def partial_functions_and_keywords(compiled, programs=2):
    given = {"scale": 2.0}
    def scaled(x, by, **options):
        extra = options.pop("extra", 0.0)
        return x * by * options["scale"] + extra
    def f(x): return functools.partial(scaled, by=2.0)(x, **given, extra=1.0) + partial(x)
    partial = functools.partial(scaled, by=4.0, scale=1.0)
    for k in range(4): given["scale"] = 2.0 + k // 2; yield f(torch.ones(2))
def targets_that_are_attributes(compiled, programs=1):
    def f(x):
        cache = Cache(1.0)
        cache.mean, [cache.more, *rest] = x.mean(), x.unbind()
        del cache.more
        return cache.mean, hasattr(cache, "more"), rest
    for _ in range(3): yield f(torch.randn(3))
def an_attribute_that_is_put_back(compiled, programs=1):
    settings = Cache(2.0)
    def f(x):
        before = settings.scale
        settings.scale = 5.0
        try:
            return settings.update(x) if settings.scale == 2.0 else x * settings.scale
        finally:
            settings.scale = before
    for _ in range(3): yield f(torch.ones(2)), settings.scale
def an_attribute_that_stays(compiled, programs=0):
    settings = Cache(2.0)
    def f(x):
        settings.scale = settings.scale + 1
        return x * settings.scale
    for _ in range(3): yield f(torch.ones(2)), settings.scale
def a_context_variable(compiled, programs=2):
    def f(x):
        x = x * VARIABLE.get()
        token = VARIABLE.set(3.0)
        try:
            return x * VARIABLE.get()
        finally:
            VARIABLE.reset(token)
    for k in range(4):
        if k == 2: VARIABLE.set(5.0)
        yield f(torch.ones(2)), VARIABLE.get()
    VARIABLE.set(1.0)
def a_weak_dictionary(compiled, programs=2):
    layer = nn.Linear(2, 2)
    known = weakref.WeakKeyDictionary({layer: 2.0})
    def f(x): return layer(x) * known.get(layer) * known.get(x.dtype.__class__, 1.0)
    for k in range(4): known[layer] = 2.0 + k // 2; yield f(torch.ones(2))
def a_method_of_a_class(compiled, programs=2):
    class Scale:
        @classmethod
        def of(cls, x): return x * 2
        @staticmethod
        def more(x): return x + 1
    def f(x): return Scale.more(Scale.of(x))
    for k in range(4):
        if k == 2: Scale.of = classmethod(lambda cls, x: x * 3)
        yield f(torch.ones(2))
def the_variables_of_a_frame(compiled, programs=0):
    def f(x):
        y = x * 2
        return sorted(vars()), y
    for _ in range(3): yield f(torch.ones(2))
def autocasting_that_is_off(compiled, programs=1):
    def f(x):
        with torch.autocast("cpu", enabled=False):
            return x * torch.finfo(x.dtype).max, torch.is_autocast_enabled("cpu"), torch.jit.is_scripting()
    for _ in range(3): yield f(torch.ones(2))
def a_function_that_keeps_its_results(compiled, programs=1):
    def f(x): return x * 2 if cached(x.shape[0]) else x
    for _ in range(3): yield f(torch.ones(2))
def the_first_of_a_generator(compiled, programs=2):
    scales = [1.0, 2.0]
    def f(x):
        return x * next((each for each in scales if each > 1)) * next((each for each in scales if each > 9), 3.0)
    for k in range(4): scales[1] = 2.0 + k // 2; yield f(torch.ones(2))
def a_loss_that_the_call_creates(compiled, programs=1):
    def f(x, y): return nn.CrossEntropyLoss(label_smoothing=0.1)(x, y), nn.Sequential(nn.ReLU(), nn.Flatten(0))(x)
    for _ in range(3):
        x = torch.randn(4, 3, requires_grad=True)
        loss, _ = f(x, torch.tensor([0, 1, 2, 1]))
        loss.backward()
        yield loss, x.grad
def a_layer_that_the_call_creates(compiled, programs=0):
    def f(x): return nn.Linear(2, 2)(x)
    for _ in range(3): yield f(torch.ones(2)).sum().item()
def a_list_as_index(compiled, programs=1):
    def f(x): return x[..., [-1, 0]], x[[True, False]]
    for _ in range(3): yield f(torch.randn(2, 3))
def a_result_and_views_of_it(compiled, programs=1):
    def f(x):
        y = x * 2
        return y.t(), y, y[0]
    for _ in range(3):
        with torch.no_grad(): turned, y, row = f(torch.randn(2, 3)); row.fill_(9); turned[1, 1] = 7
        yield turned, y, row, turned._base is y, row._base is y, y._version
def an_attribute_of_a_module_that_is_the_same(compiled, programs=1):
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = 4
        def forward(self, x):
            self.shift = min(self.shift, x.shape[0])
            return x + self.shift
    module = Shifted()
    f = compiled(lambda x: module(x))
    for _ in range(4): yield f(torch.ones(2)), module.shift
def a_function_of_its_own_without_gradients(compiled, programs=1):
    def f(x):
        same, more = Same.apply(x * 2, x)
        return Swish.apply(same, 0.5) + more
    for _ in range(3):
        with torch.no_grad(): yield f(torch.randn(2, 3).requires_grad_())
def a_function_of_its_own_that_writes(compiled, programs=1):
    f = compiled(lambda x: Doubled.apply(x + 1) * 3)
    for _ in range(3):
        with torch.no_grad(): yield f(torch.randn(3))
def a_function_of_its_own_with_gradients(compiled, programs=1):
    f = compiled(lambda x: Swish.apply(x, 2.0).sum())
    for _ in range(3): x = torch.randn(3, requires_grad=True); f(x).backward(); yield x.grad
def a_layer_without_parameters_of_a_user(compiled, programs=1):
    class Activation(nn.Module):
        def forward(self, x): return x.sigmoid() * x
    table = {"swish": Activation}
    f = compiled(lambda x: table["swish"]()(x))
    for _ in range(3): yield f(torch.randn(3))
def a_tensor_of_a_module_set_to_itself(compiled, programs=2):
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.arange(6.0).view(3, 2)
        def forward(self, x):
            self.table = self.table.to(x.device)
            return x + self.table
    module = Positions()
    f = compiled(lambda x: module(x))
    for k in range(6):
        if k == 3: module.table = module.table + 1
        yield f(torch.ones(3, 2)), module.table
def tensors_of_lists_and_tensors_and_numbers_of_numpy(compiled, programs=1):
    def f(x):
        weights = torch.as_tensor([1.0, 2.0], device=x.device)
        return torch.as_tensor(x) * weights + torch.as_tensor(x, dtype=torch.float64) * np.sqrt(x.shape[0])
    for _ in range(3): yield f(torch.randn(3, 2))
def an_array_of_numpy_as_a_tensor(compiled, programs=0):
    array = np.ones(2)
    f = compiled(lambda x: x + torch.as_tensor(array))
    for k in range(3): array[0] = k; yield f(torch.ones(2))
def a_result_that_is_a_view_of_a_product(compiled, programs=1):
    layer = nn.Linear(3, 4)
    f = compiled(lambda x: layer(x).transpose(1, 2))
    for _ in range(3):
        with torch.no_grad(): y = f(torch.randn(2, 5, 3)); y[0, 0] = 1
        yield y, y.shape, y.stride(), y._base.shape
"""
CASES = made(TEXT, globals(), "<cases>")


@pytest.mark.parametrize("name", list(CASES))
def test_programs(name: str) -> None:
    case = CASES[name]
    (count,) = case.__defaults__
    results: list[Any] = []

    def compiled(function: Any) -> Any:
        results.append(torch.compile(function))
        return results[-1]

    found = difference(outcome(case, plain), outcome(case, compiled))
    assert not found, f"{name}: {found}"
    assert [len(each.variants) for each in results] == [count], "\n".join(each.explain() for each in results)


@pytest.mark.parametrize("bits", range(1, 32))
def test_gradients_of_some_of_many_results(bits: int) -> None:
    """There are backward programs for few of the combinations; from the others backward goes through the function."""

    def f(x: Any) -> Any:
        x = nn.functional.dropout(x)
        return [x, x * 2, x.sin(), x.exp(), x * x]

    def gradients(f: Any) -> Any:
        torch.manual_seed(3)
        found = []
        for _ in range(3):
            x = torch.ones(3, requires_grad=True)
            results = f(x)
            chosen = [results[k] for k in range(5) if bits >> k & 1]
            sum(chosen).sum().backward(retain_graph=True)
            chosen[0].sum().backward()
            found.append((x.grad.tolist(), torch.rand(1).item()))
        return found

    compiled = torch.compile(f)
    assert gradients(f) == gradients(compiled)
    assert len(compiled.variants) == 1 and not compiled.reasons


LOOKS = [
    "x * vars(a)['lr']", "x * dict(vars(a))['lr']", "x * a.__dict__['lr']", "sum(x * v for v in vars(a).values())",
    "(lambda lr, n: x * lr * n)(**vars(a))", "x * getattr(a, 'lr', 1) if hasattr(a, 'lr') else x",
]  # fmt: skip


@pytest.mark.parametrize("text", LOOKS)
def test_options_are_looked_at_and_guarded(text: str) -> None:
    a = argparse.Namespace(lr=0.5, n=3)
    function = defined(f"def step(x):\n    return {text}\n", a=a)
    compiled = torch.compile(function, fullgraph=True)
    for a.lr in (0.5, 0.5, 0.25, 0.5):
        assert torch.equal(compiled(torch.ones(2)), function(torch.ones(2)))
    assert len(compiled.variants) == 2
