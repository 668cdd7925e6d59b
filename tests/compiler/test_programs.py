"""Programs that are run twice, as they are and compiled: all that can be seen of them is the same, bit for bit."""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import itertools
import linecache
import math
import threading  # noqa: F401  (a program uses it)
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import nn


class Own:
    """An object with attributes."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


Compile = Callable[..., Any]
Program = Callable[[Compile], Iterator[Any]]
PROGRAMS: dict[str, Program] = {}


def seen(x: Any) -> Any:
    """Return all that can be seen of a result."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            return repr(x), x.requires_grad, seen(x.detach().to_dense())
        if x.is_inference():
            return "inference", str(x.dtype), tuple(x.shape), x.detach().numpy().tobytes()
        own = x.detach()
        if isinstance(tried(lambda: x.is_leaf), str):
            return "a view that may not be looked at", own.numpy().tobytes()
        if own.dtype == torch.bfloat16:
            own = own.float()
        numbers = str(own.tolist()) if own.numel() < 1000 else ""
        return (
            type(x).__name__, str(x.dtype), tuple(x.shape), x.stride() if x.numel() > 1 else (), own.numpy().tobytes(),
            numbers, x.requires_grad, x.is_leaf, x._version, seen(x.grad) if x.is_leaf else None,
        )  # fmt: skip
    if isinstance(x, dict):
        return type(x).__name__, [(seen(key), seen(each)) for key, each in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [seen(each) for each in x]
    if isinstance(x, (set, frozenset)):
        return type(x).__name__, sorted(map(repr, x))
    if isinstance(x, nn.Module):
        modes = [each.training for each in x.modules()]
        return seen(dict(x.named_parameters())), seen(dict(x.named_buffers())), modes
    if isinstance(x, torch.optim.Optimizer):
        return seen(x.state_dict()), [seen(p) for group in x.param_groups for p in group["params"]]
    if isinstance(x, np.ndarray):
        return "array", str(x.dtype), x.shape, x.tobytes()
    if isinstance(x, float):
        return type(x).__name__, x.hex()
    return type(x).__name__, repr(x)


def values(x: Any) -> Any:
    """Return the numbers alone, which are the caller's, so that nobody changes them."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone().numpy().tobytes()
    if isinstance(x, dict):
        return [values(each) for each in x.values()]
    return [values(each) for each in x] if isinstance(x, (list, tuple)) else None


def tried(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a call returns, or the class of its error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # every class: it is compared
        return type(error).__name__


def outcome(make: Program, compiled: Compile) -> list[Any]:
    torch.manual_seed(5)
    results: list[Any] = []
    kept: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = make(compiled)
        while True:
            try:
                each = next(steps)
            except StopIteration:
                break
            except Exception as error:  # every class: it is compared
                results.append(("raised", type(error).__name__))
                break
            kept.append(each)
            results.append((seen(each), torch.get_rng_state().numpy().tobytes()))
    results.append([values(each) for each in kept])
    return results


def difference(one: Any, other: Any) -> str:
    """Return where the first of two outcomes differs from the second, and how; an empty string if nowhere."""
    if one == other and type(one) is type(other):
        return ""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        for k, (a, b) in enumerate(zip(one, other, strict=False)):
            found = difference(a, b)
            if found:
                return f"[{k}]{found}"
    return f": {one!r:.200} became {other!r:.200}"


COMPILED: list[Any] = []


def compiled(function: Any, **options: Any) -> Any:
    made = torch.compile(function, **options)
    COMPILED.append(made)
    return made


def plain(function: Any, **options: Any) -> Any:
    return function


def same(make: Program) -> None:
    """Assert that a program means the same compiled."""
    expected = outcome(make, plain)
    got = outcome(make, compiled)
    found = difference(expected, got)
    assert not found, f"{make.__name__}: {found}"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 3)
        self.scale = 1.5

    def forward(self, x: Any) -> Any:
        return self.second(torch.relu(self.first(x))) * self.scale


def batch(count: int = 5) -> tuple[Any, Any]:
    return torch.randn(count, 4), torch.randint(0, 3, (count,))


def trainer(model: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


# What programs use ---------------------------------------------------------------------------------

SCALE = 2.0
BIG = {k: float(k) for k in range(1500)}
ORDERED: Any = collections.OrderedDict(a=1.0, b=2.0)
NAMES: set[str] = {"a"}
LOG: list[Any] = []
ARRAY = np.ones(())
QUEUE: Any = collections.deque([1, 2])
BOX: dict[str, Any] = {"log": [], "by": {"k": 2.0}}
CONFIG = Own(lr=0.5, opts=[1.0], inner=Own(k=3.0))
ITERATOR: Any = iter(())


class Box:
    def __init__(self) -> None:
        self.n = 1

    def __len__(self) -> int:
        return self.n

    def __float__(self) -> float:
        return self.n * 0.5

    def __iter__(self) -> Any:
        return iter(range(self.n))

    def __str__(self) -> str:
        return "a" * self.n


class Pair(NamedTuple):
    x: Any
    items: Any


def the_log() -> Any:
    return LOG


def config() -> Any:
    return CONFIG


class Cached:
    n = 1

    @functools.cached_property
    def k(self) -> float:
        return self.n * 2.0


@dataclasses.dataclass
class Options:
    rate: float = 0.5
    steps: int = 2
    names: list[str] = dataclasses.field(default_factory=list)

    @property
    def double(self) -> float:
        return self.rate * 2


class ClassAttribute(nn.Module):
    factor = 2.0

    def forward(self, x: Any) -> Any:
        return self.helped(x) * self.factor

    def helped(self, x: Any) -> Any:
        return x + 1


class Derived(ClassAttribute):
    pass


class Private:
    def __init__(self) -> None:
        self.__k = 3.0

    def step(self, x: Any) -> Any:
        return x * self.__k


class Indexed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def __getitem__(self, k: int) -> Any:
        return self.parts[k]

    def __len__(self) -> int:
        return 2


# Training -------------------------------------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1}, "Adam": {}, "AdamW": {"amsgrad": True}, "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "ASGD": {},
    "NAdam": {}, "RAdam": {}, "RMSprop": {"momentum": 0.9, "centered": True}, "Rprop": {}, "Adafactor": {},
}  # fmt: skip


def trained(kind: str, options: dict[str, Any]) -> Program:
    def make(compiled: Compile) -> Iterator[Any]:
        model = Net()
        optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
        step = compiled(trainer(model, optimizer))
        x, y = batch()
        for k in range(12):
            x, y = batch(3 if k == 7 else 5)
            yield step(x, y), model, optimizer
            if k == 3:
                optimizer.param_groups[0]["lr"] *= 0.5
            if k == 4:
                optimizer.load_state_dict(optimizer.state_dict())
            if k == 5:
                model.first.weight.requires_grad_(False)
            if k == 6:
                model.first.weight.requires_grad_(True)
            if k == 8:
                optimizer.add_param_group({"params": [torch.ones(2, requires_grad=True)], "lr": 0.3})
            if k == 9:
                model.load_state_dict({key: each * 0.5 for key, each in model.state_dict().items()})
            if k == 10:
                model.second.weight.data = torch.randn(3, 6)

    make.__name__ = f"{kind} {options}"
    return make


for _kind, _options in KINDS.items():
    for _more in ({}, {"foreach": False}, {"foreach": True}, {"maximize": True}, {"weight_decay": 0.1}):
        if not (_kind == "Rprop" and "weight_decay" in _more):
            _made = trained(_kind, {**_options, **_more})
            PROGRAMS[_made.__name__] = _made
for _options in (
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "fused": True},
):
    _made = trained("SGD", _options)
    PROGRAMS[_made.__name__] = _made

S = torch.optim.lr_scheduler
SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "step": lambda o: S.StepLR(o, 2),
    "multi": lambda o: S.MultiStepLR(o, [2, 4]),
    "exponential": lambda o: S.ExponentialLR(o, 0.9),
    "cosine": lambda o: S.CosineAnnealingLR(o, 5),
    "warm": lambda o: S.CosineAnnealingWarmRestarts(o, 3),
    "cycle": lambda o: S.OneCycleLR(o, 0.5, total_steps=20),
    "cyclic": lambda o: S.CyclicLR(o, 0.01, 0.1, step_size_up=2),
    "lambda": lambda o: S.LambdaLR(o, lambda k: 0.5**k),
    "multiplicative": lambda o: S.MultiplicativeLR(o, lambda k: 0.9),
    "linear": lambda o: S.LinearLR(o),
    "constant": lambda o: S.ConstantLR(o, total_iters=3),
    "polynomial": lambda o: S.PolynomialLR(o),
    "sequential": lambda o: S.SequentialLR(o, [S.ConstantLR(o), S.ExponentialLR(o, 0.5)], [2]),
    "chained": lambda o: S.ChainedScheduler([S.ConstantLR(o), S.ExponentialLR(o, 0.5)]),
}


def scheduled(name: str, inside: bool) -> Program:
    def make(compiled: Compile) -> Iterator[Any]:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        schedule = SCHEDULES[name](optimizer)
        inner = trainer(model, optimizer)

        def both(x: Any, y: Any) -> Any:
            loss = inner(x, y)
            schedule.step()
            return loss

        step = compiled(both if inside else inner)
        for _ in range(7):
            x, y = batch()
            yield step(x, y), model, schedule.state_dict().get("_last_lr"), schedule.last_epoch, optimizer
            if not inside:
                schedule.step()

    make.__name__ = f"{name} {'inside' if inside else 'outside'}"
    return make


for _name, _inside in itertools.product(SCHEDULES, (True, False)):
    _made = scheduled(_name, _inside)
    PROGRAMS[_made.__name__] = _made


class Sizes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(3 * 4 * 4, 3)
        self.register_buffer("average", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        with torch.no_grad():
            self.average.mul_(0.9).add_(x.mean((0, 2, 3)), alpha=0.1)
        return self.last(self.drop(x).flatten(1))


def recurrent(kind: Any) -> Program:
    def make(compiled: Compile) -> Iterator[Any]:
        model = kind(3, 4, num_layers=2, batch_first=True, dropout=0.2)
        last = nn.Linear(4, 2)
        optimizer = torch.optim.RMSprop([*model.parameters(), *last.parameters()])

        def step(x: Any, state: Any = None) -> Any:
            optimizer.zero_grad()
            out, state = model(x, state)
            loss = last(out).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            return loss, tuple(each.detach() for each in state) if isinstance(state, tuple) else state.detach()

        step = compiled(step)
        state = None
        for k in range(5):
            loss, state = step(torch.randn(2, 5, 3), state)
            yield loss, state, model
            if k == 3:
                state = None

    make.__name__ = kind.__name__
    return make


for _kind_of in (nn.LSTM, nn.GRU, nn.RNN):
    PROGRAMS[_kind_of.__name__] = recurrent(_kind_of)


def kinds_of_errors(compiled: Compile) -> Iterator[Any]:
    i = torch.tensor
    functions = [
        (lambda x: torch.bernoulli(x), i([0.5]), i([1.5])),
        (lambda x: torch.multinomial(x, 1), i([0.5, 0.1]), i([-1.0, 1.0])),
        (lambda x: F.cross_entropy(torch.eye(3), x), i([0, 1, 2]), i([0, 1, 5])),
        (lambda x: F.nll_loss(torch.eye(3), x), i([0, 1, 2]), i([0, 1, 5])),
        (lambda x: F.binary_cross_entropy(x, torch.ones(1)), i([0.5]), i([1.5])),
        (lambda x: torch.arange(3).gather(0, x), i([1]), i([5])),
        (lambda x: torch.arange(3).index_select(0, x), i([1]), i([5])),
        (lambda x: torch.arange(3).take(x), i([1]), i([5])),
        (lambda x: torch.arange(3)[x], i([1]), i([5])),
        (lambda x: torch.zeros(3).scatter(0, x, 1.0), i([1]), i([5])),
        (lambda x: torch.zeros(3).index_add(0, x, torch.ones(1)), i([1]), i([5])),
        (lambda x: F.one_hot(x), i([1]), i([-5])),
        (lambda x: F.one_hot(x, 3), i([1]), i([5])),
        (lambda x: torch.linalg.cholesky(x), torch.eye(2), -torch.eye(2)),
        (lambda x: torch.linalg.inv(x), torch.eye(2), torch.zeros(2, 2)),
        (lambda x: torch.linalg.solve(x, torch.ones(2)), torch.eye(2), torch.zeros(2, 2)),
        (lambda x: torch.poisson(x), i([1.0]), i([-1.0])),
        (lambda x: 3 // x, i([1]), i([0])),
        (lambda x: 3 % x, i([1]), i([0])),
        (lambda x: i([2]) ** x, i([1]), i([-1])),
        (lambda x: torch.distributions.Normal(0.0, x).rsample(), i([1.0]), i([-1.0])),
        (lambda x: torch.distributions.Bernoulli(x).log_prob(torch.ones(1)), i([0.5]), i([-1.0])),
        (lambda x: torch.distributions.Categorical(x).entropy(), i([0.5, 0.5]), i([-1.0, 1.0])),
        (lambda x: torch.normal(0.0, x), i([1.0]), i([-1.0])),
        (lambda x: F.embedding_bag(x, torch.eye(3), torch.tensor([0])), i([1]), i([5])),
        (lambda x: nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True), i([1.0]), i([math.nan])),
        (lambda x: F.embedding(x, torch.eye(3), max_norm=1.0), i([1]), i([5])),
        (lambda x: torch.repeat_interleave(torch.arange(2), x), i([1, 2]), i([3, 0])),
        (lambda x: x.new_zeros(3).index_fill(0, x, 1), i([1]), i([5])),
        (lambda x: torch.bincount(x), i([1]), i([-5])),
        (lambda x: torch.linalg.eigh(x), torch.eye(2), torch.full((2, 2), math.nan)),
        (lambda x: F.ctc_loss(torch.zeros(4, 1, 3), torch.tensor([[1]]), x, torch.tensor([1])), i([4]), i([9])),
        (lambda x: F.max_unpool1d(torch.ones(1, 1, 2), x, 2), i([[[0, 2]]]), i([[[0, 9]]])),
        (lambda x: torch.searchsorted(torch.arange(3), x), i([1]), i([7])),
        (lambda x: x.masked_scatter(x > 0, torch.ones(1)), i([1.0, -1.0]), i([1.0, 1.0])),
        (lambda x: torch.arange(3.0).put(x, torch.ones(1)), i([1]), i([5])),
        (lambda x: torch.take_along_dim(torch.arange(3), x, 0), i([1]), i([5])),
        (lambda x: torch.linspace(0, 1, 3).quantile(x), i(0.5), i(1.5)),
        (lambda x: F.multi_margin_loss(torch.eye(2), x), i([0, 1]), i([0, 5])),
        (lambda x: torch.histc(x, 3), i([1.0, 2.0]), i([math.nan, 1.0])),
        (lambda x: torch.cartesian_prod(x, x), i([1.0]), i([2.0])),
        (lambda x: torch.linalg.matrix_rank(x), torch.eye(2), torch.ones(2, 2)),
        (lambda x: torch.isclose(x, torch.ones(1)), i([1.0]), i([2.0])),
        (lambda x: x.expand(2, 1).unique(dim=0), i([1.0]), i([2.0])),
        (lambda x: torch.where(x > 1), i([1.0]), i([2.0])),
        (lambda x: x.bool().all() and x, i([1.0]), i([0.0])),
        (lambda x: torch.std_mean(x), i([1.0, 2.0]), i([0.0, 7.0])),
        (lambda x: x.max(0), i([1.0, 2.0]), i([0.0, 7.0])),
        (lambda x: torch.aminmax(x), i([1.0, 2.0]), i([0.0, 7.0])),
        (lambda x: x.kthvalue(1), i([1.0, 2.0]), i([0.0, -7.0])),
        (lambda x: x.mode(), i([1.0, 2.0]), i([0.0, -7.0])),
        (lambda x: torch.frexp(x.sum()), i([1.0, 2.0]), i([0.0, -7.0])),
        (lambda x: torch.slogdet(torch.diag(x)), i([1.0, 2.0]), i([0.0, -7.0])),
        (lambda x: torch.linalg.lstsq(torch.diag(x), torch.eye(2)), i([1.0, 2.0]), i([3.0, -7.0])),
    ]
    for function, good, bad in functions:
        f = compiled(function)
        yield [tried(f, x.clone()) for x in (good, good, bad, good, bad)], torch.rand(1)


PROGRAMS["kinds_of_errors"] = kinds_of_errors


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        LOG.append(1)
        return function(*args, **kwargs) + 1

    return wrapper


class Callable_:
    k = 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.k

    def method(self, x: Any) -> Any:
        self.k += 1
        return x * self.k

    @staticmethod
    def static(x: Any) -> Any:
        return x * 3

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.k


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        LOG.append(2)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3


def of_all(x: Any) -> Any:
    return tuple(of_all(each) for each in x) if isinstance(x, tuple) else x.exp()


def twice_differentiated(x: Any, w: Any, v: Any) -> Any:
    return F.linear(torch.relu(F.linear(x, w)), v)


#: Programs: generators that are given what compiles, or does not, and yield what is to be compared. In each, the
#: functions f, g, h and step without a decorator are compiled.
TEXT = r"""
# What Python reads
def a_global(compiled):
    global SCALE
    def f(x): return x * SCALE
    x = torch.randn(3)
    for k in range(6): SCALE = 1.0 + k // 2; yield f(x)
def a_global_that_goes(compiled):
    global SCALE
    def f(x): return x * SCALE
    x = torch.randn(3)
    SCALE = 2.0
    yield f(x)
    yield f(x)
    del SCALE
    yield tried(f, x)
    SCALE = 2.0
    yield tried(f, x)
def a_closure(compiled):
    k = 1
    def f(x): return x * k + len(str(k))
    for k in (1, 1, 2, 1, 2.0, True): yield f(torch.ones(2))
def a_closure_that_goes(compiled):
    k = 1
    def f(x): return x * k
    yield f(torch.ones(2))
    yield f(torch.ones(2))
    del k
    yield tried(f, torch.ones(2))
    k = 3
    yield f(torch.ones(2))
def a_large_dict(compiled):
    def f(x): return x * BIG[7]
    for k in range(4): BIG[7] = float(k); yield f(torch.ones(2))
def an_ordered_dict(compiled):
    def f(x):
        for each in ORDERED.values():
            x = x * 2 + each
        return x * ORDERED["a"]
    for k in range(4): ORDERED["a"] = float(k); yield f(torch.ones(2))
def the_order_of_a_dict(compiled):
    def f(given):
        x = 0
        for key, each in given.items():
            x = x * 2 + each * len(key)
        return x
    a, b = torch.randn(2), torch.randn(2)
    for k in range(4): yield f({"a": a, "bb": b} if k % 2 else {"bb": b, "a": a})
def the_order_of_keywords(compiled):
    def f(**given):
        x = 0
        for key in given:
            x = x * 2 + given[key]
        return x
    a, b = torch.randn(2), torch.randn(2)
    for k in range(4): yield (f(a=a, b=b) if k % 2 else f(b=b, a=a))
def a_set(compiled):
    def f(x): return x * 2 if "b" in NAMES else x
    for k in range(4): (NAMES.add if k % 2 else NAMES.discard)("b"); yield f(torch.ones(2))
def the_length_of_a_set(compiled):
    def f(x): return x * len(NAMES)
    for k in range(4): (NAMES.add if k % 2 else NAMES.discard)("b"); yield f(torch.ones(2))
def the_length_of_a_queue(compiled):
    def f(x): return x * len(QUEUE) + sum(QUEUE)
    QUEUE.clear()
    for k in range(4): QUEUE.append(k); yield f(torch.ones(2))
def a_number_of_an_array(compiled):
    def f(x): return x * float(ARRAY)
    for k in range(4): ARRAY[...] = k; yield f(torch.ones(2))
def a_tensor_of_an_array(compiled):
    array = np.ones(2)
    def f(x): return x + torch.tensor([array, array])
    for k in range(4): array[...] = k; yield f(torch.ones(2))
def objects_that_answer(compiled):
    box = Box()
    functions = [compiled(each) for each in (
        lambda x: x * len(box), lambda x: x * float(box), lambda x: x * sum(list(box)), lambda x: x * len(str(box)),
        lambda x: x if bool(box) else -x
    )]
    for k in range(4): box.n = (k + 1) % 3; yield [f(torch.ones(2)) for f in functions]
def an_iterator_that_is_used_up(compiled):
    global ITERATOR
    def f(x):
        for k, _ in zip(ITERATOR, range(1), strict=False):
            x = x * k
        return x
    ITERATOR = iter([2, 3, 4, 5, 6, 7])
    for _ in range(5): yield f(torch.ones(2))
def a_list_in_a_namedtuple(compiled):
    pair = Pair(1, [2.0])
    def f(x): return x * pair.items[0]
    for k in range(4): pair.items[0] = float(k); yield f(torch.ones(2))
def a_list_that_a_function_returns(compiled):
    def f(x):
        the_log().append(1)
        return x * 2
    LOG.clear()
    for _ in range(4): yield f(torch.ones(2)), list(LOG)
def an_object_that_a_function_returns(compiled):
    def f(x): return x * config().lr
    for k in range(4): CONFIG.lr = k * 0.5; yield f(torch.ones(2))
def an_object_that_a_function_returns_is_changed(compiled):
    def f(x):
        config().count = 3.0
        return x * 2
    for k in range(4): CONFIG.count = k; yield f(torch.ones(2)), CONFIG.count
def a_list_of_a_dict(compiled):
    def f(x):
        BOX.get("log").append(len(BOX))
        return x * 2
    BOX["log"] = []
    for _ in range(4): yield f(torch.ones(2)), list(BOX["log"])
def getattr_of_objects(compiled):
    def f(x): return x * getattr(CONFIG, "inner").k
    def g(x):
        getattr(CONFIG, "opts").append(1)
        return x * 2
    CONFIG.opts = []
    for k in range(4): CONFIG.inner.k = float(k); yield f(torch.ones(2)), g(torch.ones(2)), list(CONFIG.opts)
def an_attribute_that_goes(compiled):
    own = Own(k=2.0)
    def f(x): return x * own.k
    yield f(torch.ones(2))
    yield f(torch.ones(2))
    del own.k
    yield tried(f, torch.ones(2))
    own.k = 4.0
    yield f(torch.ones(2))
def a_cached_property(compiled):
    own = Cached()
    def f(x): return x * own.k
    for k in range(5):
        yield tried(f, torch.ones(2))
        own.n = k
        if k % 2: del own.k
def a_dataclass(compiled):
    own = Options()
    def f(x, options):
        for _ in range(options.steps):
            x = x * options.double
        return x + len(options.names)
    for k in range(6):
        own.rate = 0.5 + k // 2
        own.steps = 1 + k // 3
        own.names.append("a")
        yield f(torch.ones(2), own)
    yield f(torch.ones(2), Options())
def an_attribute_over_that_of_a_class(compiled):
    model = ClassAttribute()
    f = compiled(model)
    for k in range(5):
        yield f(torch.ones(2))
        if k == 1: model.factor = 5.0
    model.helped = lambda x: x - 1
    yield f(torch.ones(2))
def a_method_over_that_of_a_class(compiled):
    model = ClassAttribute()
    f = compiled(model)
    yield f(torch.ones(2))
    yield f(torch.ones(2))
    model.helped = lambda x: x - 1
    yield f(torch.ones(2))
def a_method_over_that_of_a_base(compiled):
    model = Derived()
    f = compiled(model)
    yield f(torch.ones(2))
    yield f(torch.ones(2))
    Derived.forward = lambda self, x: x - 7
    try: yield f(torch.ones(2))
    finally: del Derived.forward
    yield f(torch.ones(2))
def a_private_name(compiled):
    f = compiled(Private().step)
    for _ in range(3): yield tried(f, torch.ones(2))
def a_walrus_in_a_chain(compiled):
    def f(x):
        if 0 < (n := len(x)) < 5:
            return x * n
        return x
    for _ in range(3): yield tried(f, torch.ones(2))
def two_that_are_one(compiled):
    def f(x, y): return x * 7 if x is y else x + y
    a, b = torch.randn(2), torch.randn(2)
    yield f(a, b)
    yield f(a, b)
    yield f(a, a)
    yield f(b, a)
def the_version_is_read(compiled):
    def f(x): return x * x._version
    x = torch.ones(2)
    for _ in range(4): yield f(x); x.add_(1)
def a_list_that_holds_itself(compiled):
    own = [2.0]
    own.append(own)
    def f(x): return x * own[0]
    for _ in range(3): yield tried(f, torch.ones(2))
def a_module_with_items(compiled):
    own = Indexed()
    def f(x): return own[0](x) + own[1](x)
    for _ in range(3): yield tried(f, torch.ones(2))
def the_length_of_a_module_list(compiled):
    own = nn.ModuleList([nn.Linear(2, 2)])
    def f(x): return x * len(own)
    for _ in range(4): yield f(torch.ones(2)); own.append(nn.Linear(2, 2))
# What reads values
def items_in_lists(compiled):
    functions = [compiled(each) for each in (
        lambda x: torch.tensor([x.sum().item(), 1.0]), lambda x: sum([x.sum().item(), x.max().item()]),
        lambda x: max([x.sum().item(), x.max().item()]), lambda x: f"{[x.sum().item()]}",
        lambda x: "%s" % (x.sum().item(),), lambda x: [x.sum().item()] > [1.0]
    )]
    for _ in range(4): x = torch.randn(3); yield [f(x) for f in functions]
def tensors_in_lists(compiled):
    functions = [compiled(each) for each in (
        lambda x: torch.tensor([x[0], x[1]]), lambda x: str([x]), lambda x: "{}".format(x), lambda x: "%s" % [x],
        lambda x: torch.tensor(x), lambda x: torch.full((2,), x[0]), lambda x: torch.linspace(x[0], x[1], 3)
    )]
    for _ in range(4): x = torch.randn(3); yield [tried(f, x) for f in functions]
def the_largest_of_tensors(compiled):
    functions = [compiled(each) for each in (
        lambda x, y: max(x.sum(), y.sum()) * 2, lambda x, y: min([x.sum(), y.sum()]) * 2,
        lambda x, y: sorted([x.sum(), y.sum()]), lambda x, y: x if any([x.sum() > 0, y.sum() > 0]) else y,
        lambda x, y: x if all((each > 0 for each in (x.sum(), y.sum()))) else y
    )]
    for _ in range(6): x, y = torch.randn(3), torch.randn(3); yield [f(x, y) for f in functions]
def what_is_in_a_tensor(compiled):
    functions = [compiled(each) for each in (
        lambda x: x * 2 if 2 in x else x, lambda x: x * 2 if x.sum() in [3, 4] else x,
        lambda x: x * 2 if [x.sum()] == [3] else x,
        lambda x: x * [x[0], x[1], torch.tensor(2)].index(torch.tensor(2))
    )]
    for k in range(6): x = torch.tensor([k, 1, 1]); yield [f(x) for f in functions]
def a_tensor_counts(compiled):
    def ranged(x, n):
        for _ in range(n):
            x = x * 2
        return x
    def sliced(x, n): return x[:n]
    def sliced_by_call(x, n): return x[slice(0, n)]
    def viewed(x, n): return x.reshape(n, -1)
    def zeros(x, n): return torch.zeros(n) + x[0]
    def ones(x, n): return torch.ones((n, 2)) + x[0]
    def repeated(x, n): return x.repeat(n)
    def summed(x, n): return x.reshape(2, 3, 1).sum(n - 1)
    def listed(x, n): return x[[n, 0]]
    def times(x, n): return [x] * n
    functions = [compiled(each) for each in (ranged, sliced, sliced_by_call, viewed, zeros, ones, repeated, summed,
            listed, times)]
    for k in range(6): yield [tried(f, torch.arange(6.0), torch.tensor(1 + k % 3)) for f in functions]
def a_chain_ends_with_numbers(compiled):
    def f(x): return x * 2 if x.sum() < 3 < 5 else x
    for k in range(4): yield f(torch.ones(2) * k)
def an_item_before_a_write(compiled):
    def f(x):
        total = x.sum()
        before = total.item()
        total.mul_(2)
        return before, total
    for _ in range(4): yield f(torch.randn(3))
def items_kept_in_a_list(compiled):
    def f(x):
        loss = x.sum()
        LOG.append(loss.item())
        return loss
    LOG.clear()
    for _ in range(4): yield f(torch.randn(3)), list(LOG)
def items_are_returned(compiled):
    def f(x): return {"loss": x.sum().item(), "all": [x.max().item(), (x.min().item(),)]}
    for _ in range(4): yield f(torch.randn(3))
# Results
def results_that_are_arguments(compiled):
    def f(xs): return xs
    def g(x):
        both = [x * 2]
        return both, both
    def h(x): return x, x, x[1:], x.T
    for _ in range(3):
        xs = [torch.ones(2), 3]
        one, other = g(xs[0])
        a, b, c, d = h(torch.ones(3))
        yield f(xs) is xs, one is other, a is b, c._base is a, d._base is a, c._is_view()
        c.add_(1)
        yield a, b, c, d
def a_view_of_what_was_made(compiled):
    def f(x): return (x * 2)[1:]
    for _ in range(3): y = f(torch.ones(3)); y.add_(1); yield y, y._is_view()
def results_share_memory(compiled):
    def f(x):
        y = x * 2
        return y, y[0], y.T, [y]
    for _ in range(3):
        a, b, c, (d,) = f(torch.ones(3, 2))
        a[0].add_(1)
        c.mul_(3)
        yield a, b, c, d, a is d
def results_are_views_of_arguments(compiled):
    def f(x): return x[0], x.reshape(-1), x.detach(), x.T.reshape(-1), x.data
    for k in range(4):
        x = torch.arange(6.0).reshape(2, 3) * k
        got = f(x)
        for each in got: each.add_(1)
        yield x, got
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    yield f(x), x
def writes_past_the_counter(compiled):
    @compiled
    def data(x):
        x.data.add_(1)
        return x * 2
    @compiled
    def detached(x):
        x.detach().add_(1)
        return x * 2
    x, y = torch.zeros(2), torch.zeros(2)
    for _ in range(4): yield data(x), detached(y), x, y
def writes_before_an_error(compiled):
    table = torch.randn(3, 2)
    def f(x, i):
        x.add_(1)
        y = F.embedding(i, table)
        x.mul_(2)
        return y
    x = torch.zeros(2)
    for k in (0, 1, 2, 3, 0, -1): yield tried(f, x, torch.tensor([k])), x
def gradients_are_kept_after_an_error(compiled):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(4, 3)
    @compiled
    def step(x):
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()
    yield step(x), step(x), step(x)
    for rate in ("none", 0.1, "none"):
        kept = [p.grad for p in model.parameters()]
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        yield tried(step, 2 * x), kept, [p.grad for p in model.parameters()]
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.zero_grad()
    yield step(x), step(x)
def draws_before_an_error(compiled):
    table = nn.Embedding(3, 2)
    def f(x, i):
        x = F.dropout(x)
        return table(i) + x
    for k in (0, 1, 3, 2, 7, 0): yield tried(f, torch.ones(2), torch.tensor([k]))
def an_error_that_is_caught(compiled):
    table = torch.randn(3, 2)
    def f(x, i):
        y = F.dropout(x)
        try:
            return F.embedding(i, table)
        except IndexError:
            return y
    for k in (0, 1, 3, 2, 7, 0): yield tried(f, torch.ones(2), torch.tensor([k]))
def an_error_that_is_caught_at_first(compiled):
    table = torch.randn(3, 2)
    def f(x, i):
        try:
            return F.embedding(i, table)
        except IndexError:
            return x * 2
    for k in (3, 3, 1, 2, 7, 0): yield tried(f, torch.ones(2), torch.tensor([k]))
def an_error_of_what_is_not_used(compiled):
    table = torch.randn(3, 2)
    def f(x, i):
        F.embedding(i, table)
        return x * 2
    for k in (0, 1, 3, 2): yield tried(f, torch.ones(2), torch.tensor([k]))
# Gradients
def one_leaf_twice(compiled):
    def f(x, y):
        loss = (x * 2 + y * 3).sum()
        loss.backward()
        return loss
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for a, b in ((x, y), (x, y), (x, x), (y, x), (y, y)): x.grad = y.grad = None; yield f(a, b), x, y
def the_graph_is_kept(compiled):
    w = torch.ones(2, requires_grad=True)
    def f(x):
        loss = (w * x).sin().sum()
        loss.backward(retain_graph=True)
        return loss
    for _ in range(4): loss = f(torch.randn(2)); yield tried(loss.backward), w; yield tried(loss.backward), w
def a_graph_that_saved_nothing(compiled):
    w = torch.ones(2, requires_grad=True)
    def f(x):
        loss = (w + x).sum()
        loss.backward()
        return loss
    for _ in range(4): loss = f(torch.randn(2)); yield tried(loss.backward), w
def two_results_one_at_a_time(compiled):
    v, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    def f(x): return (v * x).sin(), (w * x).cos()
    for _ in range(3):
        v.grad = w.grad = None
        a, b = f(torch.randn(2))
        yield tried(a.sum().backward), v, w
        yield tried(b.sum().backward), v, w
def a_result_that_is_not_used(compiled):
    def f(x): return x * 2, x.sqrt()
    for _ in range(3):
        x = torch.zeros(2, requires_grad=True)
        a, _ = f(x)
        a.sum().backward()
        yield x
def a_leaf_inside_and_outside(compiled):
    def f(x): return x.sin() * x.cos() + x.exp()
    for _ in range(4):
        x = torch.randn(50, requires_grad=True)
        (f(x) * 1.7 + x * 0.3 + f(x) * x).sum().backward()
        yield x
def memory_changed_before_backward(compiled):
    w = torch.randn(3, requires_grad=True)
    def f(x): return x * w
    for k in range(4):
        x = torch.randn(3)
        y = f(x)
        if k % 2: x.add_(1)
        yield tried(y.sum().backward), w
def second_derivatives(compiled):
    def f(x, w): return torch.tanh(x @ w).sum(1)
    w = torch.randn(4, 3, requires_grad=True)
    for _ in range(4):
        x = torch.randn(2, 4, requires_grad=True)
        (g,) = torch.autograd.grad(f(x, w).sum(), x, create_graph=True)
        (g * g).sum().backward()
        yield g, x, w
def a_penalty_inside(compiled):
    w = torch.randn(4, 3, requires_grad=True)
    def f(x):
        x = x.detach().requires_grad_()
        y = torch.tanh(x @ w).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        loss = (g * g).sum()
        loss.backward()
        return loss
    for _ in range(4): yield f(torch.randn(2, 4)), w
def gradients_laid_out_otherwise(compiled):
    w = torch.randn(40, 30, requires_grad=True)
    b = torch.randn(30, requires_grad=True)
    def f(x): return x @ w + b
    for k in range(6):
        x = torch.randn(50, 40, requires_grad=True)
        y = f(x)
        if k == 0: y.sum().backward()
        elif k == 1: y.backward(torch.randn(30, 50).T)
        elif k == 2: y.backward(torch.randn(30).expand(50, 30))
        elif k == 3: y.T.contiguous().sum(0).sin().sum().backward()
        elif k == 4: y.mean().backward()
        else: y.backward(torch.randn(50, 60)[:, ::2])
        yield x, w, b
def hooks_later(compiled):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    step = compiled(trainer(model, optimizer))
    x, y = batch()
    calls = []
    yield step(x, y), model
    yield step(x, y), model
    hook = model.first.register_forward_hook(lambda m, a, out: out * 2)
    yield step(x, y), model
    hook.remove()
    yield step(x, y), model
    hook = model.first.weight.register_hook(lambda g: g * 2)
    yield step(x, y), model
    hook.remove()
    yield step(x, y), model
    hook = model.second.bias.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.clone()))
    yield step(x, y), model, list(calls)
    hook.remove()
    yield step(x, y), model
    hook = optimizer.register_step_pre_hook(lambda *a: calls.append(2))
    yield step(x, y), model, list(calls)
    hook.remove()
    hook = optimizer.register_step_post_hook(lambda *a: calls.append(3))
    yield step(x, y), model, list(calls)
    hook.remove()
    hook = nn.modules.module.register_module_forward_hook(lambda m, a, out: calls.append(type(m).__name__))
    yield step(x, y), model, list(calls)
    hook.remove()
    hook = model.register_full_backward_hook(lambda m, a, b: calls.append("back"))
    yield step(x, y), model, list(calls)
    hook.remove()
    hook = model.second.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    yield step(x, y), model, list(calls)
    hook.remove()
    yield step(x, y), model, list(calls)
# Optimizers and writes
def rates_read_after_a_schedule(compiled):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], 1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    def f(x):
        groups = optimizer.param_groups
        (w * x).sum().backward()
        optimizer.step()
        schedule.step()
        return x * groups[0]["lr"]
    for _ in range(8): yield f(torch.ones(2)), w
def a_schedule_on_a_plateau(compiled):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    inner = trainer(model, optimizer)
    def f(x, y):
        loss = inner(x, y)
        schedule.step(loss)
        return loss
    x, y = batch()
    for _ in range(6): yield tried(f, x, y), optimizer.param_groups[0]["lr"], schedule.state_dict(), model
def a_schedule_made_later(compiled):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    step = compiled(trainer(model, optimizer))
    x, y = batch()
    for k in range(6):
        yield step(x, y), model
        if k == 2: schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        if k > 2:
            with warnings.catch_warnings(record=True) as caught: warnings.simplefilter("always"); schedule.step()
            yield [str(each.message)[:40] for each in caught], model, schedule.get_last_lr()
def zeros_for_gradients(compiled):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.1)
    def f(x):
        optimizer.zero_grad(set_to_none=False)
        return x * 2
    yield f(torch.ones(2)), w
    yield f(torch.ones(2)), w
    w.grad = torch.ones(2)
    yield f(torch.ones(2)), w
    yield f(torch.ones(2)), w
    w.grad = None
    yield f(torch.ones(2)), w
def groups_go(compiled):
    v, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([{"params": [v]}, {"params": [w], "lr": 0.3}], 0.1)
    def f(x):
        optimizer.zero_grad()
        loss = (v * w * x).sum()
        loss.backward()
        optimizer.step()
        return loss
    for k in range(6):
        yield tried(f, torch.ones(2)), v, w
        if k == 2: optimizer.param_groups.pop()
        if k == 3: optimizer.add_param_group({"params": [w], "lr": 0.01})
def an_argument_of_another_kind(compiled):
    def f(x):
        if isinstance(x, torch.Tensor):
            (x * x).sum().backward()
            return x.grad * 2
        return x * 2
    x = torch.ones(2, requires_grad=True)
    yield tried(f, x)
    x.grad = None
    yield tried(f, x)
    yield tried(f, 3)
    yield tried(f, None)
    yield tried(f, torch.ones(2))
    yield tried(f, [1])
def an_argument_that_gets_a_graph(compiled):
    def f(x, y): x.mul_(y)
    for _ in range(3):
        x, y = torch.ones(2), torch.randn(2, requires_grad=True)
        for _ in range(3): f(x, y); yield x
        x.sum().backward()
        yield y
def a_view_of_what_is_detached(compiled):
    def f(x): return x.data[1:]
    for _ in range(3): yield f(torch.randn(3, requires_grad=True))
def random_fills(compiled):
    def f(x):
        return x + 1, torch.empty(3).normal_(), torch.zeros(2).uniform_(0, 2), torch.empty(2).bernoulli_(0.5)
    for _ in range(3): yield f(torch.ones(3))
def a_fill_with_probabilities_that_are_computed(compiled):
    def f(x): return torch.empty(3).bernoulli_(torch.sigmoid(x))
    for k in range(4): yield f(torch.full((3,), 100.0 * (-1) ** k))
def a_write_to_what_has_a_graph(compiled):
    def f(x):
        y = x * 2
        y[:1] = 3
        return y
    for _ in range(3):
        x = torch.randn(3, requires_grad=True)
        y = f(x)
        yield y
        y.sum().backward()
        yield x
def a_write_to_what_is_saved(compiled):
    def f(x):
        h = x * 2
        y = h.sin()
        h.add_(1)
        return y
    for _ in range(3): y = f(torch.randn(3, requires_grad=True)); yield y; yield tried(y.sum().backward)
def a_constant_is_written_to(compiled):
    def f(x):
        v = F.softmax(torch.arange(4.0), -1)
        w = v * 2
        v.masked_fill_(v > 0.2, 0.5)
        return x + v, w
    for _ in range(3): yield f(torch.randn(4))
def a_list_that_is_returned(compiled):
    def f(x): return BOX["log"]
    BOX["log"] = []
    for k in range(3): f(torch.ones(1)).append(k); yield list(BOX["log"])
# Training, and all kinds of code
def a_convolutional_network(compiled):
    model = Sizes()
    optimizer = torch.optim.Adam(model.parameters())
    step = compiled(trainer(model, optimizer))
    for k in range(8):
        x, y = torch.randn(4 if k != 5 else 2, 1, 8, 8), torch.randint(0, 3, (4 if k != 5 else 2,))
        yield step(x, y), model
        if k == 3: model.eval()
        if k == 4: model.train()
        if k == 6: model.norm.eval()
def modes_inside(compiled):
    model = Sizes()
    def f(x, training):
        model.train(training)
        return model(x)
    for k in range(6): yield f(torch.randn(2, 1, 8, 8), k % 3 == 0), model
def other_norms(compiled):
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
            nn.GroupNorm(2, 4), nn.BatchNorm1d(4, momentum=None), nn.PReLU(), nn.LayerNorm(6), nn.GELU(),
            nn.Dropout1d(0.5), nn.Softmax(-1), nn.RReLU(), nn.AlphaDropout(0.2))
    f = compiled(model)
    for k in range(6):
        y = f(torch.randn(3, 2, 8))
        y.square().sum().backward()
        yield y, model
        if k == 3: model.eval()
def a_transformer(compiled):
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2,
            enable_nested_tensor=False)
    words = nn.Embedding(10, 8)
    words.weight.requires_grad_()
    optimizer = torch.optim.AdamW([*model.parameters(), *words.parameters()])
    def step(i):
        mask = nn.Transformer.generate_square_subsequent_mask(i.shape[1])
        out = model(words(i), mask=mask)
        loss = F.cross_entropy((out @ words.weight.T).flatten(0, 1), i.flatten())
        optimizer.zero_grad()
        loss.backward()
        total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item(), total
    for k in range(5): yield step(torch.randint(0, 10, (2, 6 if k != 3 else 4))), model, words
    yield tried(step, torch.full((2, 6), 99)), model, words
    yield step(torch.randint(0, 10, (2, 6))), model
def weights_are_tied(compiled):
    one, other = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    other.weight = one.weight
    optimizer = torch.optim.Adam(one.parameters(), 0.1)
    def step(i):
        loss = F.cross_entropy(other(one(i)), i)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    for k in range(6):
        yield step(torch.randint(0, 5, (4,))), one, other
        if k == 3: other.weight = nn.Parameter(torch.randn(5, 3))
def gradients_accumulate(compiled):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    @compiled
    def part(x, y):
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
        return loss.detach()
    @compiled
    def finish():
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    held = []
    for k in range(9):
        yield part(*batch()), model
        if k % 2: held.append(model.first.weight.grad); yield finish(), model
        if k == 4: model.first.weight.grad.mul_(2)
        if k == 6: model.zero_grad()
        yield held
def gradients_are_kept(compiled):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    step = compiled(trainer(model, optimizer))
    held = []
    for k in range(6):
        yield step(*batch()), model
        held += [p.grad for p in model.parameters()]
        if k % 2: held[-1].zero_()
        if k == 3: model.first.bias.grad = model.first.bias.grad.clone().requires_grad_()
        yield held
def backward_outside(compiled):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    f = compiled(model)
    for k in range(8):
        x, y = batch(4 if k == 6 else 5)
        x.requires_grad_(k % 2 == 0)
        optimizer.zero_grad()
        out = f(x)
        loss = F.cross_entropy(out, y)
        if k == 3: out.retain_grad()
        loss.backward(retain_graph=k == 4)
        if k == 4: loss.backward()
        optimizer.step()
        yield out, loss, model, x, out.grad if k == 3 else None
        yield tried(loss.backward), model
def modes_outside(compiled):
    model = Net()
    f = compiled(model)
    x = torch.randn(2, 4)
    for _ in range(2):
        yield f(x)
        with torch.no_grad(): yield f(x)
        with torch.inference_mode(): yield f(x)
        with torch.autocast("cpu"): yield f(x)
        with torch.enable_grad(), torch.no_grad(): yield f(x)
        yield f(x.double().float())
        yield tried(f, x.double())
    with torch.inference_mode(): x = torch.randn(2, 4)
    yield f(x)
def modes_within(compiled):
    model = Net()
    @torch.no_grad()
    def quiet(x): return model(x)
    def f(x):
        with torch.no_grad():
            y = model(x)
        with torch.enable_grad():
            z = model(x)
        return y, z, quiet(x)
    def g(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)
    def h(x):
        torch.set_grad_enabled(False)
        return model(x)
    @compiled
    def i(x):
        with torch.inference_mode():
            return model(x)
    for _ in range(3):
        x = torch.randn(2, 4)
        yield f(x)
        yield g(x)
        yield i(x)
        yield h(x), torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        with torch.no_grad(): yield f(x)
def default_dtypes(compiled):
    def f(x): return x / 2 + torch.ones(3) + torch.tensor(1.5), torch.rand(2)
    x = torch.arange(3)
    for k in range(6):
        torch.set_default_dtype(torch.float64 if k in (2, 3) else torch.float32)
        try: yield f(x)
        finally: torch.set_default_dtype(torch.float32)
def anomalies(compiled):
    w = torch.zeros(2, requires_grad=True)
    def f(x):
        loss = ((w * x) ** 0.5 * 0).sum()
        loss.backward()
        return loss
    yield tried(f, torch.zeros(2)), w
    w.grad = None
    yield tried(f, torch.zeros(2)), w
    w.grad = None
    with torch.autograd.detect_anomaly(): yield tried(f, torch.zeros(2)), w
def saved_tensors(compiled):
    packed = []
    f = compiled(lambda x: (x.exp() * x).sum())
    for k in range(4):
        x = torch.randn(3, requires_grad=True)
        if k > 1:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(1), t * 2)[1], lambda t: t):
                y = f(x)
        else: y = f(x)
        y.backward()
        yield y, x, list(packed)
def draws(compiled):
    generator = torch.Generator()
    def f(x):
        return (F.dropout(x), torch.rand(3), torch.randn_like(x), torch.bernoulli(x.sigmoid()),
                torch.multinomial(x.abs(), 2), torch.randint(0, 9, (3,)), torch.randperm(4),
                torch.empty(2).normal_(generator=generator), torch.rand(2, generator=generator), torch.normal(0.0,
                1.0, (2,)), F.gumbel_softmax(x), F.rrelu(x, training=True), torch.poisson(x.abs()))
    for k in range(8):
        yield f(torch.randn(3, 4)), generator.get_state()
        if k == 2: torch.manual_seed(3)
        if k == 3: generator.manual_seed(4)
        if k == 4: generator.set_state(torch.Generator().get_state())
        if k == 5: torch.set_rng_state(torch.get_rng_state())
def a_seed_inside(compiled):
    def f(x):
        torch.manual_seed(2)
        return F.dropout(x)
    for _ in range(3): yield f(torch.ones(5)), torch.rand(1)
def arguments_of_all_kinds(compiled):
    def f(x, *rest, scale=2, **more):
        y = x * scale
        for each in rest:
            y = y + each
        return {"y": y, "more": sorted(more), "n": len(rest), "sum": y.sum(), "x": x}
    x = torch.arange(6).reshape(2, 3)
    for k in range(2):
        for each in (x, x.float(), x.T, x.double().T, x[:, ::2].half(), x.bool(), x[0, 0], x[:0],
                x.float().requires_grad_(), x.float().requires_grad_() * 2, x.bfloat16(), x.to(torch.complex64),
                x.float().expand(2, 2, 3), x.byte()):
            yield tried(f, each)
            yield tried(f, each, 1, k, scale=k)
            yield tried(f, each, each, scale=3.5, a=1)
def structures(compiled):
    def f(given):
        return Pair(given["a"][0] * given["n"], [given["p"].x + 1, (given["a"][1], None, "s")]), {"k": given["n"]}
    for k in range(5): yield f({"a": [torch.randn(2), torch.randn(2)], "p": Pair(torch.ones(1), k), "n": k // 2})
def things_that_are_called(compiled):
    @decorated
    def wrapped(x): return x * 2
    scope = {}
    exec("def f(x): return x * 5", scope)
    own = Callable_()
    functions = [compiled(each) for each in (wrapped, scope["f"], own, own.method, Callable_.static,
            Callable_.of_class, functools.partial(torch.add, other=3), functools.partial(wrapped), torch.sin,
            nn.ReLU(), lambda x: x + 1, torch.vmap(lambda x: x * 2), torch.func.grad(lambda x: (x ** 2).sum()),
            compiled(torch.cos))]
    LOG.clear()
    for k in range(4): yield [f(torch.ones(2) * k) for f in functions], len(LOG), own.k
def transforms_of_what_is_compiled(compiled):
    def f(x): return (x.sin() * x).sum()
    for _ in range(3):
        x = torch.randn(3, 2)
        yield (f(x), torch.vmap(f)(x), torch.func.grad(f)(x), torch.func.jvp(f, (x,), (x,)), torch.func.hessian(f)(x))
        yield (torch.func.vjp(f, x)[1](torch.ones(())), torch.utils.checkpoint.checkpoint(f, x.requires_grad_(),
                use_reentrant=False))
def functional_calls(compiled):
    model = Net()
    f = compiled(model)
    for k in range(4):
        x = torch.randn(2, 4)
        other = {name: (p * k).detach().requires_grad_() for name, p in model.named_parameters()}
        yield (torch.func.functional_call(f, {f"_orig_mod.{a}" if f is not model else a: p for a,
                p in other.items()}, (x,)), f(x))
def python_in_general(compiled):
    def recursive(x, n): return x if not n else recursive(x * 2, n - 1) + 1
    def f(xs, n):
        total, *rest = [x * k for k, x in enumerate(xs)]
        by = {str(k): x for k, x in enumerate(rest)}
        for key, x in sorted(by.items()):
            total = total + x * len(key)
        while n > 0:
            n -= 1
            if n == 2:
                continue
            total += n
        else:
            total = -total
        try:
            by["none"]
        except KeyError:
            total = total + 1
        finally:
            total = total * 1.5
        if (m := len(by)) > 1 and (not by.get("none")):
            total = total / m
        f"{n}"
        first, second = total[0], total[1:]
        first += 1
        total[-1] *= 2
        g = lambda a, b=n: a + b
        return (recursive(g(total), 2), {**by, "f": first}, [*rest, second.clone()],
                (x for x in "ab").__next__() if n < 0 else n)
    for k in range(6): yield f([torch.randn(3) for _ in range(2 + k // 3)], k // 2 + 2)
def extensions(compiled):
    def f(x): return Doubled.apply(x) + 1
    def g(x): return x + 1
    def h(x): return x + torch.from_numpy(np.sin(x.detach().numpy())) * np.pi
    for _ in range(3):
        x = torch.randn(2, requires_grad=True)
        y = f(x)
        y.sum().backward()
        yield y, x, g(torch.ones(2)), g(nn.Parameter(torch.ones(2))), h(x)
def patches(compiled):
    model = Net()
    f = compiled(model)
    x = torch.randn(2, 4)
    before = F.relu, nn.Linear.forward, torch.relu
    yield f(x)
    yield f(x)
    try:
        nn.Linear.forward = lambda self, x: x @ self.weight.T
        yield f(x)
        torch.relu = torch.sigmoid
        yield f(x)
    finally: F.relu, nn.Linear.forward, torch.relu = before
    yield f(x)
    model.forward = lambda x: x
    yield f(x)
    del model.forward
    model.first = nn.Linear(4, 6)
    yield f(x)
    model.first = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    yield f(x)
    model.scale = torch.ones(3)
    yield f(x)
    model.double()
    yield tried(f, x), f(x.double())
def threads(compiled):
    w = torch.randn(40, 40)
    def f(x):
        for _ in range(5):
            x = torch.tanh(x @ w) + 1
        return x
    xs = [torch.randn(30, 40) for _ in range(16)]
    results = {}
    def work(k):
        for _ in range(5):
            results[k] = f(xs[k])
    for _ in range(3):
        workers = [threading.Thread(target=work, args=(k,)) for k in range(16)]
        for each in workers: each.start()
        for each in workers: each.join()
        yield [results[k] for k in range(16)]
def overlapping_arguments(compiled):
    def f(x, y):
        x.add_(y)
        return x * y
    for k in range(6):
        x = torch.arange(6.0)
        pairs = [(x, torch.ones(6)), (x, torch.ones(6)), (x[:3], x[3:]), (x[1:], x[:-1]), (x, x), (x, x.detach())]
        yield tried(f, *pairs[k]), x, x._version
def writes_through_views(compiled):
    held = torch.zeros(3)
    def f(x, i):
        y = x * 1
        z = y.T[0]
        z += 2
        y[i] = 5
        x[..., 0] = y.sum()
        x.t().mul_(2)
        held.add_(1)
        held[1:].sub_(x.mean())
        return y, z.clone(), held * 2
    for k in range(6):
        x = torch.arange(6.0).reshape(2, 3)
        yield f(x, k % 2), x, held
        if k == 3: held.zero_()
def optimizers_without_a_model(compiled):
    w = torch.randn(3, requires_grad=True)
    optimizer = torch.optim.Adam([w], 0.1)
    def f(x):
        for _ in range(2):
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            loss.backward()
            optimizer.step()
        return loss, w.grad, w, optimizer.param_groups[0]["lr"]
    for k in range(6):
        yield f(torch.randn(3)), w, optimizer
        if k == 2: optimizer.param_groups[0]["lr"] = 0.01
        if k == 3: optimizer.state.clear()
def dropout_and_backward_outside(compiled):
    def f(x): return F.dropout(x, 0.5)
    for _ in range(5):
        x = torch.randn(20, requires_grad=True)
        y = f(x)
        y.sum().backward()
        yield y, x
def windows_are_returned(compiled):
    def f(x): return (x + 1).unfold(0, 2, 1)
    def g(x): return (x * 2).as_strided((2, 2), (1, 1))
    for _ in range(4): yield f(torch.randn(4)), g(torch.randn(4))
def a_constant_is_written_to_through_a_view(compiled):
    def f(x):
        v = torch.full_like(x, 2)
        v[1:].sigmoid_()
        return v * 1, v[0]
    for _ in range(4): yield f(torch.randn(4))
def a_view_of_an_argument_is_written_to(compiled):
    def f(h):
        y = h ** 2
        v = h.mT
        v[..., -1] = h.sum()
        return y
    for _ in range(4): h = torch.randn(2, 3, requires_grad=True) * 2; yield tried(f(h).sum().backward), h
def numbers_of_several_results(compiled):
    def f(x):
        v = x.max(-1)[0]
        v.neg_()
        return v
    def g(x):
        v = torch.aminmax(x)[0]
        v.scatter_add_(0, torch.zeros(1, dtype=torch.int64).reshape(()), x.sum())
        return v
    for _ in range(4): yield tried(f, torch.arange(4)), tried(f, torch.randn(4)), tried(g, torch.randn(3))
def a_view_made_in_no_grad(compiled):
    def f(x):
        y = x * 2
        with torch.no_grad():
            return y.reshape(-1)
    for _ in range(4): yield f(torch.randn(2, 2, requires_grad=True))
def methods_that_are_compiled_and_call_each_other(compiled):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()
        @compiled
        def scaled(self, x): return self.inner(x) * 2
        @compiled
        def forward(self, x): return self.scaled(x) + 1
    model = nn.Sequential(Scaled(), nn.Tanh())
    whole = compiled(lambda x: model(x).sum())
    for _ in range(3): yield model(torch.randn(2, 4)), whole(torch.randn(2, 4))
def the_next_of_the_parameters(compiled):
    net = Net()
    def f(x):
        found = net.parameters()
        first = next(found)
        return x.to(first.dtype) @ first.T + sum((p.sum() for p in found)) + len(list(net.children()))
    def g(x): return x + next(iter([1.0, 2.0])) + next(net.buffers(), 3.0)
    for _ in range(3): yield f(torch.randn(2, 4)).sum(), g(torch.randn(2))
def data_filled_at_random(compiled):
    net = Net()
    def f(bound):
        net.first.weight.data.uniform_(-bound, bound)
        net.first.bias.data.zero_()
    for _ in range(3): yield f(0.5), net
def functions_that_call_themselves(compiled):
    def doubled(x, times): return doubled(x * 2, times - 1) if times else x + 1
    def shifted(x):
        def inner(x, times): return inner(x - 1, times - 1) if times else x * x
        def offset(x): return x + 1
        return doubled(inner(offset(x), 2), 3)
    f, g = compiled(shifted), compiled(of_all)
    for _ in range(3): yield f(torch.randn(2)), g((torch.randn(2), (torch.randn(1),)))
def one_row_of_columns(compiled):
    def f(x):
        row = x[:1]
        return torch.rand_like(row), torch.full_like(row, 2), torch.zeros_like(row).add_(1)
    for _ in range(3): yield f(torch.randn(4, 3).T), f(torch.randn(3, 4))
def a_result_is_shown(compiled):
    net = Net()
    step = compiled(trainer(net, torch.optim.SGD(net.parameters(), lr=0.1)))
    for _ in range(3): yield repr(step(*batch()))
def gradients_that_are_differentiated_with_the_loss(compiled):
    f = compiled(twice_differentiated)
    w, v = torch.randn(20, 3, requires_grad=True), torch.randn(2, 20, requires_grad=True)
    for _ in range(3):
        loss = f(torch.randn(10, 3), w, v).square().mean()
        grads = torch.autograd.grad(loss, (w, v), create_graph=True)
        (loss + sum(((each ** 2).sum() for each in grads))).backward()
        yield grads, w, v
        loss = f(torch.randn(10, 3), w, v).square().mean()
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        (h,) = torch.autograd.grad(g.sum() + loss, v)
        yield g, h, tried(loss.backward), w, v
def gradients_that_are_differentiated_with_hooks_about(compiled):
    f = compiled(twice_differentiated)
    w, v = torch.randn(20, 3, requires_grad=True), torch.randn(2, 20, requires_grad=True)
    u, order = torch.randn(3, 3, requires_grad=True), []
    for _ in range(3): f(torch.randn(10, 3), w, v)
    u.register_post_accumulate_grad_hook(lambda u: order.append(u.grad.sum().item()))
    for _ in range(3):
        loss = f(torch.randn(10, 3) @ u.detach(), w, v).square().mean() + (w @ u).exp().mean()
        loss.backward(create_graph=True)
        total = sum(((each.grad ** 2).sum() for each in (u, w, v)))
        yield tried(torch.autograd.grad, total, (u, w, v)), list(order)
        u.grad = w.grad = v.grad = None
def the_value_of_or_and_and(compiled):
    own = Own(scale=3, first=0.0, names=["a"])
    def f(x, more):
        scale = own.scale or 7
        add = own.first and 5.0
        act = scale > 2 and torch.tanh or torch.exp
        names = own.names or ["none"]
        return act(x) * scale + add + len(names) + (more or 2), (own.first or own.scale, add and None)
    for k in range(4): own.scale, more = k // 2 * 4, 1.5 * (k % 2); yield f(torch.randn(2), more)
def a_graph_from_before(compiled):
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    w = torch.randn(3, requires_grad=True)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    z = w.exp()
    def f(): return torch.autograd.grad(F.max_unpool2d(y, at, 2).sum(), x)
    def g(): return torch.autograd.grad((z * z).sum(), w, retain_graph=True)
    for _ in range(3): yield tried(f), tried(g)
def a_module_whose_statistics_move(compiled):
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    run = compiled(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for k in range(6):
        x = torch.randn(3, 2, 6, 6, requires_grad=True)
        y = run(x)
        if k % 2: g, = torch.autograd.grad(y.square().sum(), x, create_graph=True); loss = g.square().sum()
        else: loss = y.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield y, loss, model.state_dict()
def a_buffer_that_the_gradient_needs(compiled):
    total = torch.zeros(3)
    def f(x):
        total.add_(1)
        return x * total
    for _ in range(4): x = torch.randn(3, requires_grad=True); f(x).sum().backward(); yield x, total
def a_property_that_does_something(compiled):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
        @property
        def counted(self): return self.count.add_(1)
    model = Counting()
    def f(x): return x + getattr(model, "counted", None) + getattr(model, "other", 3)
    def g(x): return x + 1 if hasattr(model, "counted") and (not hasattr(model, "other")) else x
    for _ in range(4): yield f(torch.zeros(2)), g(torch.zeros(2)), model
"""


def made(text: str, scope: dict[str, Any], file: str) -> dict[str, Any]:
    """Return the programs of a text by name, defined in a scope; the sources of their functions are found."""
    tree = ast.parse(text)
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    for part in [part for each in found for part in each.body]:
        if isinstance(part, ast.FunctionDef) and part.name in ("f", "g", "h", "step") and not part.decorator_list:
            part.decorator_list = [ast.copy_location(ast.Name("compiled", ast.Load()), part)]
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(tree, file, "exec"), scope)
    return {each.name: scope[each.name] for each in found}


PROGRAMS |= made(TEXT, globals(), "<programs>")


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name: str) -> None:
    same(PROGRAMS[name])


def test_what_has_changed_before_the_second_derivative_is_an_error() -> None:
    own = Own(k=2.0)

    @torch.compile
    def f(x: Any) -> Any:
        return (x * own.k) ** 3

    for change in (lambda x: setattr(own, "k", 5.0), lambda x: x.detach().add_(1)):
        own.k = 2.0
        for _ in range(2):
            own.k, x = 2.0, torch.randn(3, requires_grad=True)
            y = f(x)
        change(x)
        with pytest.raises(RuntimeError, match=r"has changed since|modified by an inplace"):
            torch.autograd.grad(y.sum(), x, create_graph=True)
