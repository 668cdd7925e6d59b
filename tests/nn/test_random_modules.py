"""Random sequences of calls on modules, data loaders and saved files, run by both libraries.

A program is a list of lines. Each is run with both libraries, its value or error is compared, and the next one follows:
so a failure shows the lines that led to it. `WRITERS` has a function for each kind of program; HYPOTHESIS_PROFILE=long
makes 20,000, from a seed that TINYTORCH_SEED sets.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import strategies as st

from tests.nn.test_random_calls import Program, Text
from tests.oracle import needs_oracle
from tests.programs.drawn import RANDOMS, random_programs
from tests.programs.steps import check

pytestmark = needs_oracle

# Modules ---------------------------------------------------------------------------------------

MODULES = """\
import copy, io, pickle, torch
from collections import OrderedDict
from torch import nn
from torch.nn.utils import parametrize
def num(*shape, k=0):
    return torch.sin(torch.arange(torch.Size(shape).numel()) * 1.7 + k).reshape(shape)
def par(*shape, k=0):
    return nn.Parameter(num(*shape, k=k))
class Block(nn.Module):
    def __init__(self, *subs, n=2, persistent=True):
        super().__init__()
        self.w = par(n, n)
        self.register_parameter("none", None)
        self.register_buffer("b", num(n), persistent=persistent)
        self.register_buffer("nob", None)
        self.register_buffer("count", torch.tensor(n), persistent=not persistent)
        for k, sub in enumerate(subs):
            self.add_module(f"s{k}", sub)
    def forward(self, x, scale=1.0):
        return x * scale
class Stateful(nn.Module):
    state = 3
    def get_extra_state(self):
        return {"state": self.state}
    def set_extra_state(self, state):
        self.state = state["state"] + 1 if isinstance(state, dict) else state
    def extra_repr(self):
        return f"state={self.state}\\nmore"
class Loud(nn.Module):
    def forward(self, x, fail=False):
        if fail:
            raise KeyError("fail")
        return x + 1
class Double(nn.Module):
    def forward(self, x):
        return x * 2
    def right_inverse(self, y):
        return y / 2
def at(m, k):
    return list(m.modules())[k % len(list(m.modules()))]
def held(m, k, kind):
    found = [x for x in m.modules() if isinstance(x, kind)]
    return found[k % len(found)] if found else kind()
def full(m):
    modules = [(name, type(x).__name__, x.training) for name, x in m.named_modules()]
    return [modules, list(m.named_parameters()), list(m.named_buffers())]
def shared(m):
    all = [p for _, p in m.named_parameters(remove_duplicate=False)]
    return [[i for i, q in enumerate(all) if q is p] for p in all]
def saved(x):
    f = io.BytesIO()
    torch.save(x, f)
    return f.getvalue()
def load(content, **given):
    return torch.load(io.BytesIO(content), **given)
def changed(d, drop=None, add=None, shape=None, value=None):
    d = type(d)(d)
    for kind, place in (("drop", drop), ("shape", shape), ("value", value)):
        if place is not None and d:
            key = list(d)[place % len(d)]
            old = d.pop(key)
            if kind != "drop":
                d[key] = 3.5 if kind == "value" else num(2, 1, 3)
    if add is not None:
        d[add] = num(2)
    return d
seen = []
def hook(name, change=False):
    def run(module, *args):
        seen.append((name, type(module).__name__, [type(a).__name__ for a in args]))
        return args[-1] if change else None
    return run
def kwhook(name):
    def run(module, args, kwargs, *out):
        seen.append((name, type(module).__name__, len(args), sorted(kwargs), len(out)))
        return None if out else (args, kwargs)
    return run
handles = []
def keep(handle):
    handles.append(handle)
"""
NAMES = ("w", "b", "none", "nob", "new", "s0", "weight", "0", "1", "a", "a.b", "", "forward", "count", "c")
DTYPES = ("torch.float16", "torch.float64", "torch.float32", "torch.bfloat16")


def leaf(p: Program) -> str:
    """Return a module without submodules, at times one that stands elsewhere too."""
    n = p.size()
    lists = ", ".join(p.one("par(2)", "tied", "num(2)", "3") for _ in range(p.size(0, 3)))
    keys = p.rng.sample(["a", "b", "zz"], p.size(0, 3))
    dicts = ", ".join(f"{key!r}: {p.one('par(2)', 'tied', 'None', '4')}" for key in keys)
    return str(p.one(
        f"nn.Linear({n}, 2{p.options(bias=p.flag())})", "nn.ReLU(inplace=True)", "nn.Dropout(0.5)", "nn.Identity()",
        f"nn.BatchNorm1d({n}{p.options(affine=p.flag(), track_running_stats=p.flag(), momentum=None)})",
        f"nn.Embedding({n}, 2{p.options(padding_idx=0)})", f"nn.LayerNorm({n}{p.options(bias=p.flag())})",
        f"nn.GRU(2, {n}{p.options(bidirectional=p.flag())})", f"nn.Conv1d(2, {n}, 2{p.options(padding=1)})",
        f"Block(n={n}, persistent={p.flag()})", "Stateful()", "Loud()", "shared0", "shared1", "nn.PReLU()",
        f"nn.ParameterList([{lists}])", f"nn.ParameterDict({{{dicts}}})",
    ))  # fmt: skip


def tree(p: Program, depth: int) -> str:
    if depth == 0 or p.rng.random() < 0.15:
        return leaf(p)
    subs = [tree(p, depth - 1) for _ in range(p.size(0, 3))]
    joined = ", ".join(subs)
    named = ", ".join(f"({p.one('a', 'b', 'c', '0')!r}, {sub})" for sub in subs)
    return str(p.one(
        f"nn.Sequential({joined})", f"nn.Sequential(OrderedDict([{named}]))", f"nn.ModuleList([{joined}])",
        f"nn.ModuleDict([{named}])", f"Block({''.join(f'{sub}, ' for sub in subs)}persistent={p.flag()})",
    ))  # fmt: skip


def value(p: Program) -> str:
    return str(p.one(
        "None", "par(2)", "num(2)", "nn.Linear(1, 2)", "3", "tied", "shared0", "par(2, 2) * 2", "nn.ReLU",
        "nn.Parameter(num(2), requires_grad=False)", "nn.Buffer(num(3), persistent=False)",
    ))  # fmt: skip


def asked(p: Program, m: str) -> str:
    """Return a question to a module."""
    given = f"prefix={p.one('', 'p')!r}, remove_duplicate={p.flag()}"
    path = p.one("", "0", "s0.s0", "a.0", "0.weight", "0.w", "w", "s0.b", "a.b.c", ".", "0.", "count")
    return str(p.one(
        f"{m}.state_dict(prefix={p.one('', 'pre.')!r}, keep_vars={p.flag()})", f"repr({m})", f"shared({m})",
        f"list({m}.named_parameters({given}, recurse={p.flag()}))", f"list({m}.named_buffers({given}))",
        f"[(n, type(x).__name__) for n, x in {m}.named_modules({given})]", f"[n for n, _ in {m}.named_children()]",
        f"{m}.get_submodule({path!r})", f"{m}.get_parameter({path!r})", f"{m}.get_buffer({path!r})",
        f"hasattr({m}, {p.one(*NAMES)!r})", f"{m}.get_extra_state()", f"full(copy.copy({m}))",
        f"full(copy.deepcopy({m}))", f"full(pickle.loads(pickle.dumps({m})))", f"shared(copy.deepcopy({m}))",
        f"full(load(saved({m}), weights_only=False))", f"load(saved({m}))",
    ))  # fmt: skip


def written(p: Program, m: str) -> str:
    """Return a change of what a module holds."""
    name, dtype = p.one(*NAMES), p.one(*DTYPES)
    path = p.one("0", "s0", "a.0", "0.w", "a.b.c", "new")
    return str(p.one(
        f"{m}.register_parameter({name!r}, {value(p)})", f"delattr({m}, {name!r})",
        f"{m}.register_buffer({name!r}, {value(p)}{p.options(persistent=p.flag())})",
        f"setattr({m}, {name!r}, {value(p)})", f"{m}.add_module({name!r}, {value(p)})",
        f"{m}.set_submodule({path!r}, nn.Linear(1, 1), strict={p.flag()})",
        f"{m}.to({p.one(dtype, 'torch.int32', 'num(1).double()', repr('cpu'), repr('nope'), 'None')})",
        f"{m}.{p.one('half', 'double', 'float', 'bfloat16', 'eval')}()", f"{m}.train({p.one(True, False, 1, None)})",
        f"{m}.requires_grad_({p.flag()})", f"{m}.zero_grad({p.flag()})",
        f"{m}.apply(lambda x: seen.append(type(x).__name__))",
        f"parametrize.register_parametrization({m}, {p.one('w', 'weight', 'none', 'b', 'x')!r}, Double())",
        f"parametrize.remove_parametrizations({m}, {p.one('w', 'weight')!r}{p.options(leave_parametrized=p.flag())})",
    ))  # fmt: skip


def loaded(p: Program, m: str) -> str:
    """Return a line that loads a state dict, its own or another's, at times one that does not fit."""
    change = p.options(
        drop=p.size(0, 9), add=p.one("new", "a.b", "w", "0.weight.x", ""), shape=p.size(0, 9), value=p.size(0, 20)
    ) if p.flag() else ""  # fmt: skip
    given = p.options(strict=p.flag(), assign=p.flag())
    return str(p.one(
        f"m.load_state_dict(changed({p.one('m', 'copy.deepcopy(m)', 'm2')}.state_dict(){change}){given})",
        "store.update(x=saved(m.state_dict()))", "load(other['x'])", f"m.load_state_dict(load(other['x']){given})",
    ))  # fmt: skip


def called(p: Program, m: str) -> str:
    """Return a call, or something about hooks."""
    first, x = (p.options(prepend=p.flag()), p.one("num(2, 2)", "num(3, 2, 2)", "num(2, 2).requires_grad_()"))
    always = p.options(always_call=p.flag())
    return str(p.one(
        f"{m}({x})", f"{m}({x}, fail=True)", f"{m}({x}, scale=2.0)", f"{m}()", "list(seen)", "list(seen)",
        f"{m}({x}).sum().backward()", "[q.grad for q in m.parameters()]", f"handles[{p.size(0, 3)}].remove()",
        f"keep({m}.register_forward_hook(hook({p.size()}, {p.flag()}){first}{always}))",
        f"keep({m}.register_forward_hook(kwhook({p.size()}), with_kwargs=True{first}{always}))",
        f"keep({m}.register_forward_pre_hook(hook({p.size()}){first}))",
        f"keep({m}.register_forward_pre_hook(kwhook({p.size()}), with_kwargs=True{first}))",
        f"keep({m}.register_full_backward_hook(hook(7)))", f"keep({m}.register_full_backward_pre_hook(hook(8)))",
        f"keep({m}.register_state_dict_post_hook(hook(5)))", f"keep({m}.register_state_dict_pre_hook(hook(6)))",
        f"keep({m}.register_load_state_dict_pre_hook(hook(9)))",
        f"keep({m}.register_load_state_dict_post_hook(hook(4)))",
    ))  # fmt: skip


def contained(p: Program, m: str) -> str:
    """Return a call of a container's."""
    kind = p.one("Sequential", "ModuleList", "ParameterList", "ModuleDict", "ParameterDict")
    c, v = f"held(m, {p.size(0, 3)}, nn.{kind})", p.one(value(p), leaf(p))
    if kind == "ParameterDict":
        v = p.one("par(2)", "num(2)", "3", "None", "tied", "nn.Linear(1, 1)")
    if kind.endswith("Dict"):
        k = p.one("'a'", "'b'", "'c'", "'new'", *(("'a.b'", "''", "3") if kind == "ModuleDict" else ()))
        vs = p.one(f"{{{k}: {v}}}", f"[({k}, {v})]", f"OrderedDict(z={v}, b={v})", "3", "[3]", f"[({k},)]", "None")
        only = (f"{c}.setdefault({k}, {v})", f"{c}.get({k})", f"{c}.popitem()", f"{c} | {vs}", f"list(reversed({c}))")
        return str(p.one(
            f"{c}[{k}]", f"{c}.__setitem__({k}, {v})", f"{c}.__delitem__({k})", f"{c}.pop({k})", f"{c}.update({vs})",
            f"list({c}.keys())", f"len({c})", f"{k} in {c}", f"{c}.clear()", f"nn.{kind}({vs})",
            *(only if kind == "ParameterDict" else ()),
        ))  # fmt: skip
    i = p.one(0, 1, -1, 2, 5, -7, "slice(1, None)", "slice(None, None, -1)", "True", "torch.tensor(0)", "1.0", "None")
    vs = p.one(f"[{v}]", f"({v}, {v})", f"nn.{kind}()", "3", "iter([])", "nn.ModuleDict()", "{}")
    return str(p.one(
        f"{c}.append({v})", f"{c}.extend({vs})", f"{c}.insert({i}, {v})", f"{c}.pop({i})", f"{c}[{i}]",
        f"{c}.__setitem__({i}, {v})", f"{c}.__delitem__({i})", f"{c} + {vs}", f"{c} * {p.one(0, 2, -1, 1.5)}",
        f"{c}.__iadd__({vs})", f"len({c})", f"[type(e).__name__ for e in {c}]",
        f"[type(e).__name__ for e in reversed({c})]",
    ))  # fmt: skip


def modules(p: Program) -> str:
    """Write a tree of modules, and calls on it and on parts of it."""
    p.lines += ["shared0 = nn.Linear(2, 2)", f"shared1 = {p.one('Block()', 'nn.BatchNorm1d(2)')}", "tied = par(2, k=5)"]
    p.lines += [f"m = {tree(p, p.size(1, 3))}", f"m2 = {tree(p, 1)}", "full(m)"]
    for _ in range(p.size(2, 10)):
        part = p.often("m", f"at(m, {p.size(0, 9)})")
        p.lines.append(p.one(asked, written, loaded, called, contained)(p, part))
    p.lines += ["full(m)", "m.state_dict()", "repr(m)"]
    return MODULES


# Data ------------------------------------------------------------------------------------------

DATA = """\
import collections, torch
import numpy as np
from torch.utils.data import *
from torch.utils.data import default_collate, default_convert, distributed
Point = collections.namedtuple("Point", ["x", "y"])
def num(*shape, k=0):
    return torch.sin(torch.arange(torch.Size(shape).numel()) * 1.7 + k).reshape(shape)
class Items(Dataset):
    def __init__(self, n, make):
        self.n, self.make = n, make
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if not -self.n <= i < self.n:
            raise IndexError(i)
        return self.make(i)
class Fetched(Items):
    def __getitems__(self, indices):
        return [self.make(i) for i in indices]
class Stream(IterableDataset):
    def __init__(self, n, make):
        self.n, self.make = n, make
    def __iter__(self):
        return (self.make(i) for i in range(self.n))
class Sized(Stream):
    def __len__(self):
        return self.n
MAKE = [
    lambda i: i, lambda i: num(2, k=i), lambda i: (num(2, k=i), i), lambda i: {"x": num(1, 2, k=i), "y": [i, 0.5]},
    lambda i: Point(num(k=i), np.float32(i)), lambda i: [i, (float(i), str(i), b"q")], lambda i: np.arange(3) * i,
    lambda i: num(i + 1), lambda i: (i,) * (1 + i % 2), lambda i: np.array(i), lambda i: np.array("s"),
    lambda i: bool(i % 2),
    lambda i: {"a": {"b": (i, num(1, k=i).double())}}, lambda i: collections.OrderedDict(a=i), lambda i: np.int16(i),
    lambda i: num(2, k=i).half(), lambda i: num(2).double(), lambda i: i if i % 2 else float(i), lambda i: [],
    lambda i: {i: i}, lambda i: None if i == 2 else i, lambda i: {1, 2}, lambda i: range(2),
]
def gen(seed):
    return torch.Generator().manual_seed(seed)
def take(items):
    return [item for item, _ in zip(items, range(12))]
def bad(batch):
    raise KeyError("bad")
"""


def dataset(p: Program, depth: int = 2) -> str:
    n, make = p.size(0, 7), f"MAKE[{p.often(p.size(0, 2), p.size(0, 22))}]"
    plain = p.one(
        f"Items({n}, {make})", f"Fetched({n}, {make})", f"list(range({n}))", "'abc'",
        f"TensorDataset({', '.join(f'num({p.often(n, 3)}, 2, k={k})' for k in range(p.size(0, 3)))})",
    )  # fmt: skip
    if depth == 0 or p.rng.random() < 0.3:
        return str(plain)
    below = [dataset(p, depth - 1) for _ in range(p.size(0, 3))] or ["Items(4, MAKE[1])"]
    streams = [f"{p.one('Sized', 'Stream')}({p.size(0, 4)}, {make})" for _ in range(p.size(0, 3))]
    named = ", ".join(f"{name}={each}" for name, each in zip("abc", below, strict=False))
    return str(p.one(
        f"Subset({below[0]}, {[p.size(-1, 5) for _ in range(p.size(0, 4))]})", f"ConcatDataset([{', '.join(below)}])",
        f"{p.one('Sized', 'Stream')}({n}, {make})", f"ChainDataset([{', '.join(streams)}])",
        f"StackDataset({p.one(named, ', '.join(below))})", f"{split(p, below[0])}[0]", f"{below[0]} + {below[-1]}",
    ))  # fmt: skip


def split(p: Program, data: str) -> str:
    parts = p.one([1, 2], [0.5, 0.5], [0.3, 0.3, 0.4], [0.5, 0.6], [1.0], [3, 0], [-1, 4], [0.1], [])
    return f"random_split({data}, {parts}{p.options(generator=Text(f'gen({p.size()})'))})"


def sampler(p: Program) -> str:
    n, source = p.size(0, 6), p.options(generator=Text(f"gen({p.size()})"))
    again = p.options(replacement=p.one(True, False, 1))
    count = p.options(num_samples=p.one(3, 9, 0, -1, None, 2.5, True))
    chosen = [p.size(0, 5) for _ in range(n)]
    weights = [each + 0.5 for each in chosen]
    shared = p.options(shuffle=p.flag(), seed=3, drop_last=p.flag())
    return str(p.one(
        f"SequentialSampler(range({n}))", f"RandomSampler(range({n}){again}{count}{source})", f"{chosen}",
        f"SubsetRandomSampler({chosen}{source})", "iter([0, 1])", "3",
        f"WeightedRandomSampler({weights}, {p.one(2, 5, 0, -2, 2.5, True, 12)}{again}{source})",
        f"distributed.DistributedSampler(range({n}), {p.size(1, 3)}, {p.size(0, 3)}{shared})",
    ))  # fmt: skip


def batches(p: Program) -> str:
    drop = p.one(True, False, 1)
    return str(p.one(f"BatchSampler({sampler(p)}, {p.one(1, 2, 3, 0, -1, True, 1.5)}, {drop})", "[[0, 1], [2]]"))


def loader(p: Program) -> str:
    given = p.options(
        batch_size=p.often(p.size(), None, 0, -1, 1.5, True), shuffle=p.often(p.flag(), None, 1), drop_last=p.flag(),
        generator=Text(f"gen({p.size()})"),
    )  # fmt: skip
    rare = (
        f"sampler={sampler(p)}", f"batch_sampler={batches(p)}", "timeout=1", "timeout=-1", "persistent_workers=True",
        "prefetch_factor=2", "num_workers=-1", f"collate_fn={p.one('len', 'list', 'bad', 'default_convert', 'None')}",
    )  # fmt: skip
    return f"DataLoader(d{given}{f', {p.one(*rare)}' if p.flag() else ''})"


def data(p: Program) -> str:
    """Write a dataset, and loaders and samplers over it."""
    p.lines += [f"seed = torch.manual_seed({p.size()})", f"d = {dataset(p)}", "len(d)"]
    for _ in range(p.size(1, 4)):
        samples = f"[MAKE[{p.size(0, 22)}](i) for i in range({p.size(0, 3)})]"
        p.lines += p.one(
            [f"x = {loader(p)}", "len(x)", "take(x)", "take(x)", "torch.rand(2)"],
            [f"x = {loader(p)}", "take(x)", "type(x.sampler)", "type(x.batch_sampler)", "setattr(x, 'batch_size', 2)"],
            [f"x = {p.one(sampler(p), batches(p))}", "len(x)", "take(x)", "take(x)"],
            [f"[take(part) for part in {split(p, 'd')}]"],
            [f"default_collate({samples})", f"default_convert({samples})", f"default_collate({{'a': {samples}}})"],
            [f"d[{p.one(0, 1, -1, 5, -9, 'slice(0, 2)', '[0, 1]', 'None')}]", "take(d)"],
            [f"d.{p.one('cumulative_sizes', 'indices', 'tensors', '__getitems__([0, 1])', '__getitems__([9])')}"],
        )
    return DATA


# Saving ----------------------------------------------------------------------------------------

FILES = """\
import collections, copy, io, pickle, torch
import numpy as np
from collections import Counter, OrderedDict, defaultdict, deque
from torch import nn
Point = collections.namedtuple("Point", ["x", "y"])
class Own:
    def __init__(self, x):
        self.x = x
    def __repr__(self):
        return f"Own({self.x})"
base = (torch.arange(24.0) * 0.25 - 3).reshape(4, 6)
tied = nn.Parameter(torch.ones(3))
tagged = torch.ones(2)
tagged.tag = 5
def saved(x, **given):
    f = io.BytesIO()
    torch.save(x, f, **given)
    return f.getvalue()
def load(content, **given):
    return torch.load(io.BytesIO(content), **given)
def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    inside = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for each in inside for t in tensors(each)]
def layout(x):
    where, found = {}, []
    every = [t for t in tensors(x) if t.numel()]
    for t in every:
        memory = t.untyped_storage()
        place = where.setdefault(memory.data_ptr(), len(where))
        same = [q is t for q in every]
        found.append((place, t.storage_offset(), t.stride(), memory.nbytes(), same, sorted(vars(t))))
    return found
"""


def stored(p: Program) -> str:
    """Return a tensor, often one that shares its memory with others."""
    dtype = p.one(*DTYPES, *(f"torch.{name}" for name in ("int8", "int16", "int32", "int64", "uint8", "bool")))
    shape = p.sizes(p.size(0, 3), 0, 3)
    return str(p.one(
        "base", "base[1]", "base.t()", "base[:, 2:4]", "base[1:3, ::2]", "base[2, 3]", "base[:0]", "base.reshape(-1)",
        "base.view(2, 2, 6).permute(2, 0, 1)", "base.expand(2, 4, 6)", "base.flip(0)", "torch.tensor(2.5)", "tagged",
        f"torch.ones({shape}).to({dtype})", "torch.zeros(3, 0, 2)", "torch.ones(2).requires_grad_()", "tied",
        "nn.Parameter(base[0], requires_grad=False)", "torch.ones(2).requires_grad_() * 2", "nn.Buffer(base[1])",
        "base.as_strided((2, 2), (1, 1), 3)", "torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last)",
        "base.storage()[3]", "torch.from_numpy(np.arange(6.0).reshape(2, 3).T)",
    ))  # fmt: skip


def structure(p: Program, depth: int) -> str:
    if depth == 0 or p.rng.random() < 0.2:
        return stored(p) if p.flag() else str(p.one(
            "1", "2**70", "1.5", "'\u00fc'", "b'by'", "bytearray(b'x')", "None", "True", "1+2j", "torch.float16",
            "torch.Size([2, 3])", "torch.device('cpu')", "torch.strided", "slice(1, 2)", "np.float32(1.5)",
            "Point(1, 2)", "range(3)", "Own(3)", "{1, 2}", "frozenset([1])", "len", "int", "deque([1])",
            "Counter('aab')", "...",
            "torch.Tensor", "nn.Parameter", "nn.Linear(1, 2).state_dict()", "lambda: 1", "torch.get_rng_state()",
        ))  # fmt: skip
    inside = [structure(p, depth - 1) for _ in range(p.size(0, 3))]
    named = ", ".join(f"{p.one('1', repr('a'), '(1, 2)', 'None', 'torch.float32')}: {each}" for each in inside)
    first = inside[0] if inside else "1"
    return str(p.one(
        f"[{', '.join(inside)}]", f"({''.join(f'{each}, ' for each in inside)})", f"{{{named}}}",
        f"OrderedDict({{{named}}})", f"Point({first}, 2)", f"defaultdict(list, a={first})", "[x, x]",
    ))  # fmt: skip


def files(p: Program) -> str:
    """Write a structure, saved and loaded by each library, each its own file and the other's."""
    p.lines += [f"x = {stored(p)}", f"x = {structure(p, p.size(1, 3))}"]
    for _ in range(p.size(1, 2)):
        place = p.one("'cpu'", "None", "torch.device('cpu')", "{'cuda:0': 'cpu'}", "lambda s, place: s")
        given = p.options(weights_only=p.one(True, False, None), map_location=Text(place))
        p.lines += ["store.clear()", f"store.update(x=saved(x{p.options(pickle_protocol=2)}))"]
        p.lines += [f"y = load({p.one('store', 'other')}['x']{given})", "y", "layout(y)"]
        p.lines += [f"x = [{stored(p)}, x, {structure(p, 1)}]"]
        p.lines += [p.one("copy.deepcopy(x)", "pickle.loads(pickle.dumps(x))", "load(store['x'][:3])", "torch.load(3)")]
    return FILES


WRITERS: list[Callable[[Program], str]] = [data, data, files, modules, modules]


@random_programs(120, st.sampled_from(WRITERS), RANDOMS)
def test_random_objects_agree(write: Callable[[Program], str], rng: random.Random) -> None:
    p = Program(rng)
    begin = write(p)
    check(begin, p.lines)
