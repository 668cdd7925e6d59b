# ruff: noqa: E501 - lines of the programs that it writes
"""Random programs of derivatives: transforms, `autograd.functional`, hooks, checkpoints, Functions, modes, in both libraries.

A program is a text, so that a failure shows one that can be run. `PROGRAMS` has a function for each kind, which writes
it; HYPOTHESIS_PROFILE=long makes 20,000 programs, from a seed that TINYTORCH_SEED sets.
"""

from __future__ import annotations

import builtins
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinytorch
from tests.conftest import PROFILE, seeded
from tests.oracle import module
from tests.programs.runner import importer

torch = module()

#: What a program begins with: numbers that differ from each other, and the same in both libraries.
BEGIN = """\
import torch
from torch import nn
from torch.func import *
from torch.utils._pytree import tree_map, tree_leaves
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.autograd.function import once_differentiable
import torch.autograd.forward_ad as fwAD
AF = torch.autograd.functional
def numbers(k, *shape):
    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 1.7 + k).reshape(shape)
def like(x, k=0.0):
    return tree_map(lambda t: torch.cos(t.detach().clone() * 3 + k), x)
def total(x):
    return sum([(t * t.detach().cos()).sum() for t in tree_leaves(x)])
def attempt(f):
    try:
        return f()
    except Exception as error:
        return error
def whole(f, leaves):
    try:
        return f()
    except Exception as error:  # which gradients there are by then is left open
        for t in leaves:
            t.grad = None
        return error
torch.manual_seed(0)
log = []
"""


class Program:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.count = 0
        self.nested = False
        self.linear = False  # for `linearize`: no writes into aliases, no steps that are cut off from backward

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def often(self, usual: Any, *others: Any) -> Any:
        return usual if self.rng.random() < 0.5 else self.rng.choice(others)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def size(self, low: int = 1, high: int = 3) -> int:
        return self.rng.randint(low, high)

    def shape(self, most: int = 2) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.size(0, most)))

    def name(self, start: str = "t") -> str:
        self.count += 1
        return f"{start}{self.count}"

    def write(self, line: str) -> None:
        self.lines.append(line)

    def let(self, text: str, start: str = "t") -> str:
        name = self.name(start)
        self.write(f"{name} = {text}")
        return name

    def tensor(self, shape: Sequence[int], grad: bool = True, leaf: bool = True) -> str:
        shown = ", ".join(map(str, (self.count, *shape)))
        name = self.let(f"numbers({shown}){'.requires_grad_()' if grad else ''}")
        if grad and leaf:
            self.leaves.append(name)
        return name

    def options(self, p: float = 0.6, **given: Any) -> str:
        return "".join(f", {name}={value!r}" for name, value in given.items() if self.chance(p))

    # expressions: of any shapes, all results of the shape of x or 0-d
    def step(self, names: Sequence[str]) -> str:
        x, y = self.one(*names), self.one(*names)
        k = self.one(0.5, 2, -1.5)
        if not self.nested and self.chance(0.1):
            return str(
                self.one(
                    f"{x}.norm() * {x}",
                    f"({x} * {x}).logsumexp(tuple(range({x}.dim()))) * {x}",
                    f"torch.linalg.vector_norm({x}, 3) - {x}",
                )
            )
        return str(self.one(
            f"{x}.sin()", f"{x}.tanh()", f"{x}.sigmoid()", f"{x}.sin().exp()", f"{x} * {x}.sum()", f"{x} + {y}.sum()",
            f"{x} * {k}", f"({x}.abs() + 1).sqrt()", f"{x} / (1 + {y}.sum() ** 2)", f"{x}.square()", f"{x} ** 3",
            f"{x} - {y}.mean()", f"torch.cat([{x}.reshape(-1), {y}.reshape(-1)]).cumsum(0)[:{x}.numel()].reshape({x}.shape)",
            f"{x}.reshape(-1)[0] * {y}", f"{x}.reshape(-1).flip(0).reshape({x}.shape)", f"{x}.relu()",
            f"torch.where({x}.detach() > 0, {x}, {k} * {x})", f"{x}.unsqueeze(0).expand(2, *{x}.shape).mean(0)",
            f"torch.softmax({x}.reshape(-1), 0).reshape({x}.shape)", f"torch.outer({x}.reshape(-1), {y}.reshape(-1)).sum(1).reshape({x}.shape)",
            f"{x}.clone()", f"{x}{'' if self.linear else '.detach()'} * {y}.sum()", f"{x}.reshape(-1).roll(1).reshape({x}.shape)", f"{x}.max() * {x}",
            f"torch.stack([{x}, {x}.cos()]).prod(0)", f"{x}.view_as({x})", f"torch.atan2({x}, {y}.sum() + 3)",
            f"torch.cat([{x}.reshape(-1), {y}.reshape(-1)]).cumprod(0)[:{x}.numel()].reshape({x}.shape)", f"{x}.clamp(-0.5, 0.7)", f"{x}.var(correction=0) + {x}",
            f"torch.nn.functional.gelu({x})", f"{x}.sort(-1).values" , f"torch.lerp({x}, {x}.sin(), 0.3)",
            f"{x}.square().mean().neg() + {x}.expm1()", f"torch.addcmul({x}, {x}, {x}.cos(), value=0.5)",
            f"({x}.reshape(-1, 1) @ {x}.reshape(1, -1)).sum(0).reshape({x}.shape)",
        ))  # fmt: skip

    def body(
        self, names: list[str], most: int = 4, before: str = "    ", writes: float = 0.1
    ) -> list[str]:
        """Write the lines of a function on tensors; return the names that it has."""
        names = list(names)
        for _ in range(self.size(1, most)):
            new = self.name("v")
            self.write(f"{before}{new} = {self.step(names)}")
            names.append(new)
            if self.chance(writes):
                k = self.one(0.5, 2)
                how = self.one(
                    f"{new}.mul_({k})",
                    f"{new}.add_({new})",
                    f"{new}.sin_()",
                    f"{new}.copy_({new}.cos())",
                    f"{new}.zero_()",
                    f"{new}.reshape(-1)[0].mul_(2)",
                )
                if "clone" not in self.lines[-1]:
                    self.write(f"{before}{new} = {new}.clone()")
                self.write(f"{before}{how}")
            if self.chance(0.0 if self.linear else 0.05):
                self.write(f"{before}with torch.no_grad():")
                self.write(f"{before}    {new} = {new} * {self.one(2, new)}")
        return names


class Text(str):
    def __repr__(self) -> str:
        return str(self)


# ---- torch.func ------------------------------------------------------------------------------


def tree(p: Program, depth: int = 1, most: int = 2) -> Any:
    """A structure of shapes."""
    if depth == 0 or p.chance(0.65):
        return p.shape(most)
    kind = p.one("tuple", "list", "dict")
    items = [tree(p, depth - 1, most) for _ in range(p.size(1, 2))]
    return (kind, items)


def is_shape(t: Any) -> bool:
    return not (len(t) == 2 and t and isinstance(t[0], str))


def paths(t: Any, at: str) -> list[str]:
    if is_shape(t):
        return [at]
    kind, items = t
    keys = [repr("ab"[k]) if kind == "dict" else str(k) for k in range(len(items))]
    return [
        each for key, item in zip(keys, items, strict=True) for each in paths(item, f"{at}[{key}]")
    ]


def made(p: Program, t: Any, grad: bool) -> str:
    if is_shape(t):
        return p.tensor(t, grad)
    return pack(t[0], [made(p, item, grad) for item in t[1]])


def pack(kind: str, items: list[str]) -> str:
    if kind == "list":
        return f"[{', '.join(items)}]"
    if kind == "dict":
        return (
            "{"
            + ", ".join(f"'{key}': {item}" for key, item in zip("ab", items, strict=False))
            + "}"
        )
    return f"({', '.join(items)},)"


def result_tree(p: Program, names: list[str], depth: int = 1) -> str:
    if depth == 0 or p.chance(0.6):
        return p.often(names[-1], p.one(*names))
    kind = p.one("tuple", "list", "dict")
    return pack(kind, [result_tree(p, names, depth - 1) for _ in range(p.size(1, 2))])


def batched(t: Any, batch: int) -> Any:
    return (batch, *t) if is_shape(t) else (t[0], [batched(each, batch) for each in t[1]])


def mapped(p: Program, t: Any, batch: int) -> tuple[Any, str, Any]:
    """Return the structure with a batch, and the in_dims."""
    if is_shape(t):
        dim = p.rng.randint(0, len(t))
        shown = dim if p.flag() else dim - len(t) - 1
        return (*t[:dim], batch, *t[dim:]), str(shown), shown
    if p.chance(0.3):
        return batched(t, batch), "0", 0
    found = [mapped(p, item, batch) if p.chance(0.8) else (item, "None", None) for item in t[1]]
    kind = t[0]
    return (kind, [f[0] for f in found]), pack(kind, [f[1] for f in found]), None


def func(p: Program) -> str:
    p.nested = True
    args = [tree(p) for _ in range(p.size(1, 3))]
    grad = [p.chance(0.2) for _ in args]
    closed = [p.tensor(p.shape(), p.flag())] if p.chance(0.4) else []
    p.write(f"def f0({', '.join(f'a{k}' for k in range(len(args)))}):")
    names = [each for k, t in enumerate(args) for each in paths(t, f"a{k}")]
    p.linear = linear = p.chance(0.15)
    names = p.body(names + closed, writes=0.0 if linear else 0.1)
    p.write(f"    return {result_tree(p, names)}")
    f, heavy = "f0", 0
    count = 1 if linear else p.size(1, 3)
    for number in range(count):
        last = number == count - 1
        new = p.name("f")
        n = p.size(0, len(args) - 1)
        several = tuple(
            sorted({p.size(0, len(args) - 1) for _ in range(2)}, key=lambda _: p.rng.random())
        )
        argnums = p.often(n, several, -1 - n, tuple(reversed(several)))
        kind = p.one(
            "grad",
            "value",
            "vjp",
            "jvp",
            "jacrev",
            "jacfwd",
            "hessian",
            "vmap",
            "vmap",
            "vmap",
            "aux",
            "functionalize" if number == 0 else "aux",
        )
        if linear and last:
            kind = "linearize"
        if kind in ("jacrev", "jacfwd", "hessian"):
            if heavy > 1:
                kind = "grad"
            heavy += 1 + (kind == "hessian")
        given = p.options(argnums=argnums)
        aux = p.chance(0.3)
        if (
            kind in ("jacfwd", "hessian") and "-" in given
        ):  # there PyTorch takes the argument for a constant
            given = ""
        if kind in ("grad", "value"):
            p.write(
                f"def s{new}(*a):\n    y = {f}(*a)\n    return {'total(y), y' if aux else 'total(y)'}"
            )
            p.write(
                f"{new} = {'grad' if kind == 'grad' else 'grad_and_value'}(s{new}{given}{', has_aux=True' if aux else ''})"
            )
        elif kind in ("jacrev", "jacfwd"):
            if aux:
                p.write(
                    f"def s{new}(*a):\n    y = {f}(*a)\n    return y, {p.one('like(y)', 'y', 'a[0]')}"
                )
                given += ", has_aux=True"
            more = (
                p.options(chunk_size=p.one(None, 1, 2))
                if kind == "jacrev"
                else p.options(0.2, randomness="same")
            )
            p.write(f"{new} = {kind}({'s' + new if aux else f}{given}{more})")
        elif kind == "hessian":
            p.write(f"{new} = hessian({f}{given})")
        elif kind == "vjp":
            if aux:
                p.write(
                    f"def {new}(*a):\n    y, pull, aux = vjp(lambda *a: ({f}(*a), like(a)), *a, has_aux=True)\n    return y, pull(like(y)), aux"
                )
            else:
                p.write(
                    f"def {new}(*a):\n    y, pull = vjp({f}, *a)\n    return {p.one('y, pull(like(y))', 'pull(y)', 'pull(like(y)), pull(y)')}"
                )
        elif kind == "jvp":
            if aux:
                p.write(
                    f"def {new}(*a):\n    return jvp(lambda *a: ({f}(*a), {p.one('a[0]', 'like(a)')}), a, like(a), has_aux=True)"
                )
            else:
                p.write(
                    f"def {new}(*a):\n    return jvp({f}, a, {p.one('like(a)', 'a')}{p.options(0.2, strict=p.flag())})"
                )
        elif kind == "linearize":
            grad = [False] * len(args)
            p.write(
                f"def {new}(*a):\n    y, push = linearize({f}, *a)\n    return y, push(*like(a))"
            )
        elif kind == "functionalize":
            p.write(f"{new} = functionalize({f}{p.options(0.3, remove='mutations_and_views')})")
        elif kind == "aux":
            p.write(f"{new} = lambda *a: ({f}(*a), a[{n}])")
        else:
            batch = p.size(1, 3)
            uniform = p.chance(0.3)
            if uniform:
                args = [batched(t, batch) for t in args]
                dims = p.one("", ", 0", ", in_dims=0")
            else:
                found = [mapped(p, t, batch) if p.chance(0.75) else (t, "None", None) for t in args]
                args = [each[0] for each in found]
                dims = f", in_dims=({', '.join(each[1] for each in found)},)"
            more = p.options(
                0.2, chunk_size=p.one(None, 1, 2), randomness=p.one("same", "different", "error")
            )
            out_dims = p.often("", ", out_dims=0", ", out_dims=1", ", out_dims=-1")
            if (
                out_dims[-1:] == "1"
            ):  # of a result that does not depend on the batch PyTorch makes nonsense
                p.write(f"s{new} = lambda *a: tree_map(lambda t: t + 0 * total(a), {f}(*a))")
                f = "s" + new
            more += out_dims
            p.write(
                f"{new} = vmap({f}{dims}{more})" if dims != ", 0" else f"{new} = vmap({f}, 0{more})"
            )
        f = new
    values = [made(p, t, g) for t, g in zip(args, grad, strict=True)]
    where = (
        p.often(
            "",
            "with torch.no_grad(): ",
            "with torch.inference_mode(): ",
            "with torch.enable_grad(): ",
        )
        if p.chance(0.2)
        else ""
    )
    p.write(f"{where}out = {f}({', '.join(values)})")
    return "out"


def modules(p: Program) -> str:
    """functional_call and stack_module_state."""
    n = p.size(1, 3)
    kind = p.one(
        "nn.Linear(2, 3)",
        "nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))",
        "nn.Sequential(nn.Linear(2, 3, bias=False), nn.Softplus(), nn.GELU())",
        "nn.Sequential(nn.Linear(2, 3), nn.Softmax(-1))",
    )
    p.write(f"models = [{kind}.double() for _ in range({n})]")
    if p.chance(0.3):
        p.write("for m in models: m.eval()")
    x = p.tensor((p.size(2, 4), 2), p.flag())
    way = p.one("call", "stack", "grad", "persample", "jac", "hess", "jvp", "part")
    if way == "stack":
        p.write("params, buffers = stack_module_state(models)")
        p.write(
            "def f(params, buffers, x):\n    return functional_call(models[0], (params, buffers), (x,))"
        )
        dim = p.one(None, 0)
        value = f"{x}" if dim is None else p.tensor((n, p.size(2, 4), 2), p.flag())
        p.write(
            f"out = [params, buffers, vmap(f, in_dims=(0, 0, {dim}){p.options(0.3, out_dims=p.one(0, 1, -1), randomness='same')})(params, buffers, {value})]"
        )
        p.leaves.append("*params.values()")
        return "out"
    p.write(
        "model = models[0]\nparams = {k: v.detach() for k, v in model.named_parameters()}\nbuffers = dict(model.named_buffers())"
    )
    p.write("def f(params, x):\n    return functional_call(model, (params, buffers), (x,))")
    p.leaves.append("*model.parameters()")
    if way == "call":
        text = p.one(
            "dict(model.named_parameters())",
            "params",
            "[params, buffers]",
            "(params, {})",
            "{}",
            "{'nothing': torch.ones(1)}",
        )
        return f"functional_call(model, {text}, {p.one(f'({x},)', x)}{p.options(0.3, tie_weights=p.flag(), strict=p.flag())})"
    if way == "part":
        return f"functional_call(model, {{next(iter(params)): next(iter(params.values())) * 2}}, ({x},){p.options(0.3, strict=p.flag())})"
    if way == "grad":
        return f"{p.one('grad', 'grad_and_value')}(lambda params, x: f(params, x).square().sum(){p.options(argnums=p.one(0, 1, (0, 1)))})(params, {x})"
    if way == "persample":
        return f"vmap(grad(lambda params, x: f(params, x.unsqueeze(0)).square().sum()), in_dims=(None, 0){p.options(0.3, chunk_size=2, randomness='different')})(params, {x})"
    if way == "jac":
        return (
            f"{p.one('jacrev', 'jacfwd')}(f{p.options(argnums=p.one(0, 1, (0, 1)))})(params, {x})"
        )
    if way == "hess":
        return f"hessian(lambda params, x: f(params, x).sin().sum(){p.options(argnums=p.one(0, 1))})(params, {x})"
    return f"jvp(f, (params, {x}), like((params, {x})))"


# ---- torch.autograd.functional ---------------------------------------------------------------


def functional(p: Program) -> str:
    count = p.size(1, 3)
    shapes = [p.shape() for _ in range(count)]
    closed = [p.tensor(p.shape(), p.flag())] if p.chance(0.3) else []
    which = p.one("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
    p.write(f"def f({', '.join(f'a{k}' for k in range(count))}):")
    own = [f"a{k}" for k in range(count)]
    names = p.body([p.one(*own)] if p.chance(0.2) else own + closed)
    scalar = which in ("hessian", "vhp", "hvp")
    last = f"{names[-1]}.sum()" if scalar and p.chance(0.95) else names[-1]
    if p.chance(0.07):
        last = f"{names[-1]}.detach(){'.sum()' if scalar else ''}"
    if p.chance(0.1):
        last = p.one(*own) + (".sum()" if scalar else "")
    if not scalar and p.chance(0.3):
        last = f"{last}, {p.one(*names)}"
        last = p.often(last, f"[{last}]", f"({last}, 1)") if p.chance(0.1) else last
    elif p.chance(0.05):
        last = f"({last},)"
    p.write(f"    return {last}")
    xs = [p.tensor(s, p.flag()) for s in shapes]
    tuple_given = count > 1 or p.chance(0.3)
    given = f"({', '.join(xs)},)" if tuple_given else xs[0]
    if p.chance(0.02):
        given = f"[{', '.join(xs)}]"
    more = p.options(0.4, create_graph=p.flag(), strict=p.flag())
    if which in ("jacobian", "hessian"):
        strategy = "strategy" if which == "jacobian" else "outer_jacobian_strategy"
        more += p.options(
            0.4, vectorize=p.flag(), **{strategy: p.often("reverse-mode", "forward-mode")}
        )
        where = p.often("", "with torch.no_grad(): ") if p.chance(0.2) else ""
        p.write(f"{where}out = AF.{which}(f, {given}{more})")
        return "out"
    if which == "vjp":
        v = "" if p.chance(0.15) else f", like(f({', '.join(xs)}))"
    else:
        v = "" if p.chance(0.15) else f", like({given})"
        if p.chance(0.05):
            v = f", {p.tensor(p.shape(), False)}"
    if v and p.chance(0.2):
        v = f", tree_map(lambda t: t.requires_grad_(), {v[2:]})"
    where = p.often("", "with torch.no_grad(): ") if p.chance(0.2) else ""
    p.write(f"{where}out = AF.{which}(f, {given}{v}{more})")
    return "out"


# ---- grad and backward ------------------------------------------------------------------------


def graph(p: Program) -> list[str]:
    leaves = [p.tensor(p.shape(), p.chance(0.8), leaf=False) for _ in range(p.size(1, 3))]
    return p.body(leaves, 6, "", 0.15)


def backward(p: Program) -> str:
    names = graph(p)
    for _ in range(p.size(1, 3)):
        outs = [p.often(names[-1], *names) + p.often("", ".sum()") for _ in range(p.often(1, 2))]
        shown = outs[0] if len(outs) == 1 and p.flag() else f"[{', '.join(outs)}]"
        if len(outs) == 1 and p.chance(0.1):
            shown = f"({outs[0]},)"
        kinds = [
            p.often(f"like({o})", "None", f"numbers(1, {p.size()})", f"like({o}).float()")
            if p.chance(0.3)
            else f"like({o})"
            for o in outs
        ]
        vectors = f"[{', '.join(kinds)}]" if shown[0] in "[(" or p.chance(0.1) else kinds[0]
        keep = p.options(0.5, retain_graph=p.often(True, False, None), create_graph=p.chance(0.4))
        if p.chance(0.65):
            wanted = [p.one(*names) for _ in range(p.size(1, 3))]
            if p.chance(0.05):
                wanted = wanted[:0]
            xs = wanted[0] if len(wanted) == 1 and p.flag() else f"[{', '.join(wanted)}]"
            more = "" if p.chance(0.1) else f", {p.one('', 'grad_outputs=')}{vectors}"
            if more and p.chance(0.1) and not any("inputs=" in line for line in p.lines):
                batch = p.one("torch.stack([t, -t, t * 2])", "torch.stack([t])")
                more = f", tree_map(lambda t: {batch}, {vectors}), is_grads_batched=True, allow_unused=True"
                keep = keep.replace(", allow_unused=True", "")
            more += (
                keep
                + (
                    ""
                    if "batched" in more
                    else p.options(0.5, allow_unused=p.often(True, False, None))
                )
                + p.options(0.0 if "batched" in more else 0.5, materialize_grads=p.flag())
            )
            p.write(f"log.append(attempt(lambda: torch.autograd.grad({shown}, {xs}{more})))")
        else:
            more = keep
            if p.chance(0.4):
                wanted = [p.one(*names) for _ in range(p.size(1, 3))]
                more += (
                    f", inputs={wanted[0] if len(wanted) == 1 and p.flag() else wanted}".replace(
                        "'", ""
                    )
                )
            if p.chance(0.4):
                o = outs[0]
                p.write(
                    f"log.append(attempt(lambda: {o}.backward({p.one(kinds[0], f'gradient={kinds[0]}')}{more})))"
                )
            else:
                p.write(
                    f"log.append(attempt(lambda: torch.autograd.backward({shown}, {p.one(vectors, f'grad_tensors={vectors}')}{more})))"
                )
        if p.chance(0.1):
            p.write(
                f"log.append(attempt(lambda: {p.one(*names)}.{p.one('mul_(2)', 'zero_()', 'requires_grad_()', 'detach_()', 'requires_grad_(False)')}))"
            )
    return f"[[t, t.grad if t.is_leaf or t.retains_grad else None] for t in [{', '.join(names)}]]"


def modes(p: Program) -> str:
    """What requires grad in nests of modes."""
    leaves = [p.tensor(p.shape(), p.chance(0.6), leaf=False) for _ in range(p.size(1, 2))]
    names = list(leaves)
    depth = 0
    for _ in range(p.size(3, 9)):
        before = "    " * depth
        if depth < 4 and p.chance(0.5):
            mode = p.one(
                "torch.no_grad()",
                "torch.enable_grad()",
                "torch.inference_mode()",
                "torch.inference_mode(False)",
                "torch.set_grad_enabled(True)",
                "torch.set_grad_enabled(False)",
                "torch.autograd.set_multithreading_enabled(False)",
                "torch.autograd.inference_mode(mode=True)",
                "torch.autograd.graph.save_on_cpu()",
                "torch.inference_mode()",
            )
            p.write(f"{before}with {mode}:")
            depth += 1
            before = "    " * depth
            p.write(
                f"{before}log.append([torch.is_grad_enabled(), torch.is_inference_mode_enabled()])"
            )
        elif depth and p.flag():
            depth -= 1
            before = "    " * depth
        if p.chance(0.15):
            p.write(
                f"{before}@{p.one('torch.no_grad()', 'torch.enable_grad()', 'torch.inference_mode()', 'torch.no_grad', 'torch.inference_mode', 'torch.set_grad_enabled(False)', 'torch.enable_grad')}"
            )
            d = p.name("d")
            p.write(f"{before}def {d}(x):")
            if p.chance(0.2):
                p.write(f"{before}    yield x * 2\n{before}    yield x.sin()")
                p.write(f"{before}log.append(list({d}({p.one(*names)})))")
            else:
                p.write(f"{before}    return x * 2")
                p.write(f"{before}log.append(attempt(lambda: {d}({p.one(*names)})))")
        new = p.name("v")
        x, y = p.one(*names), p.one(*names)
        text = p.often(
            p.step(names),
            f"{x}.detach()",
            f"{x}.view(-1)",
            f"{x}.data",
            f"{x}.clone()",
            f"torch.ones(2, dtype=torch.float64, requires_grad={p.one('False', 'not torch.is_inference_mode_enabled()')})",
            f"{x}.requires_grad_(not torch.is_inference_mode_enabled())",
            f"{x}.requires_grad_(False)",
            f"{x}.mul_(2)",
            f"{x}.detach_()",
            f"{x}.zero_()",
            f"{x}.view_as({x}).mul_({y}.sum())",
            f"torch.autograd.grad({x}.sum(), {y})[0].clone()",
            f"nn.Parameter({x}) if not {x}.is_inference() else None",
            f"{x}.sin().sum().backward()",
            f"torch.zeros(2).add_({x}.sum())",
            f"{x}.new_ones(2)",
            f"torch.empty_like({x}).copy_({y}.sum())",
            f"{x}.contiguous()",
            f"{x}.expand(2, *{x}.shape)",
            f"{x}.set_({y})" if p.chance(0.0) else f"{x}.to(torch.float64)",
            f"{x}.double()",
        )
        p.write(f"{before}{new} = attempt(lambda: {text})")
        p.write(f"{before}log.append([{new}, torch.is_grad_enabled()])")
        p.write(f"{before}if not isinstance({new}, torch.Tensor): {new} = {p.one(*names)}")
        names.append(new)

    def seen(t: str) -> str:
        return f"[{t}, {t}.requires_grad, {t}.is_leaf, {t}.is_inference(), {t}.output_nr, {t}.grad_fn is None]"

    p.write(f"log.append([{', '.join(seen(t) for t in names)}])")
    for t in names[-3:]:
        p.write(
            f"log.append(attempt(lambda: torch.autograd.grad({t}.sum(), [{', '.join(leaves)}], allow_unused=True)))"
        )
    return "log"


# ---- forward mode -----------------------------------------------------------------------------


def forward(p: Program) -> str:
    p.nested = True
    p.write("with fwAD.dual_level():")
    names = []
    b = "    "
    for _ in range(p.size(1, 3)):
        shape = p.shape()
        grad = p.chance(0.2)
        t = p.name()
        p.write(
            f"{b}{t} = numbers({', '.join(map(str, (p.count, *shape)))}){'.requires_grad_()' if grad else ''}"
        )
        names.append(t)
        if grad:
            p.leaves.append(t)
        if p.chance(0.7):
            d = p.name("d")
            tangent = (
                p.often(
                    f"like({t})",
                    f"like({t}).requires_grad_()",
                    t,
                    f"numbers(2, {p.size()})",
                    "None",
                )
                if p.chance(0.3)
                else f"like({t})"
            )
            p.write(f"{b}{d} = fwAD.make_dual({t}, {tangent})")
            names.append(d)
    for _ in range(p.size(1, 4)):
        names = p.body(names, 2, b, 0.3)
        x, y = p.one(*names), p.one(*names)
        if p.chance(0.3):
            new = p.name("v")
            p.write(
                f"{b}{new} = attempt(lambda: "
                + p.one(
                    f"{x}.view(-1)",
                    f"{x}[..., :1]",
                    f"{x}.expand(2, *{x}.shape)",
                    f"{x}.detach()",
                    f"torch.zeros_like({x}).add_({y}.sum())",
                    f"{x}.view_as({x}).mul_(2)",
                    f"{x}.reshape(-1)[:1].copy_({y}.sum())",
                    f"{x}.mul_({y}.sum())",
                    f"torch.zeros(2, dtype=torch.float64).copy_({y}.sum())",
                    f"{x}.float()",
                    f"fwAD.unpack_dual({x}).primal",
                    f"fwAD.make_dual({x}, like({x}))",
                    f"{x}.sum(dtype=torch.float32)",
                    f"{x}.sort(-1, descending=True).values",
                    f"torch.no_grad()(lambda: {x} * 2)()",
                    f"torch.zeros(2, 2, dtype=torch.float64).index_fill_(0, torch.tensor([0]), {y}.sum())",
                    f"torch.where({x} > 0, {x}, 1.0)",
                )
                + ")"
            )
            p.write(
                f"{b}if not isinstance({new}, torch.Tensor):\n{b}    log.append({new}); {new} = {p.one(*names)}"
            )
            names.append(new)
        if p.chance(0.15):
            p.write(
                f"{b}log.append(attempt(lambda: jvp(lambda x: x.sin() * {y}.sum(), ({x},), (like({x}),))))"
            )
        if p.chance(0.15):
            p.write(
                f"{b}log.append(attempt(lambda: fwAD.unpack_dual(torch.autograd.grad({x}.sum(), {y}, allow_unused=True, create_graph={p.flag()})[0])))"
            )
    p.write(
        f"{b}for t in [{', '.join(names)}]:\n{b}    log.append([*fwAD.unpack_dual(t), t.requires_grad, t.is_leaf, t._version if not t.is_inference() else 0])"
    )
    if p.chance(0.1):
        p.write(f"{b}log.append(attempt(lambda: fwAD.enter_dual_level()))")
    p.write(
        f"log.append([attempt(lambda: fwAD.unpack_dual({names[-1]})), attempt(lambda: fwAD.make_dual({names[0]}, {names[0]}))])"
    )
    return "log"


# ---- checkpoint, hooks, Function --------------------------------------------------------------


def function_of(
    p: Program,
    count: int,
    closed: Sequence[str],
    before: str = "",
    random_: bool = False,
    writes: float = 0.1,
) -> str:
    """Write a function of `count` tensors, and return its name."""
    f = p.name("f")
    p.write(f"{before}def {f}({', '.join(f'a{k}' for k in range(count))}):")
    names = [f"a{k}" for k in range(count)] + list(closed)
    if random_ and p.chance(0.4):
        p.write(
            f"{before}    a0 = {p.one('nn.functional.dropout(a0, 0.5)', 'a0 * torch.rand(a0.shape, dtype=torch.float64)', 'a0 + torch.randn_like(a0)')}"
        )
    names = p.body(names, 4, before + "    ", writes)
    several = p.chance(0.3)
    p.write(f"{before}    return {names[-1] + ', ' + p.one(*names) if several else names[-1]}")
    p.several = several  # type: ignore[attr-defined]
    return f


def checkpointed(p: Program) -> str:
    leaves = [p.tensor(p.shape(), p.chance(0.75)) for _ in range(p.size(1, 3))]
    p.leaves = [t for t in p.leaves if p.chance(0.9)]
    f = function_of(p, len(leaves), (), random_=True)
    reentrant = p.chance(0.4)
    for _ in range(p.size(0, 2)):
        g = p.name("g")
        again = p.often(reentrant, True, False)
        p.write(
            f"def {g}(*a):\n    y = checkpoint({f}, *[t * {p.one(1, 2)} for t in a], use_reentrant={again}{p.options(0.3, preserve_rng_state=p.flag())}{'' if again else p.options(0.2, early_stop=p.flag(), determinism_check=p.one('none', 'default'))})"
        )
        p.write(f"    return tree_map(lambda t: {p.one('t.sin()', 't * t', 't', 't.clone()')}, y)")
        f = g
    args = list(leaves)
    if p.chance(0.3):
        args[0] = f"{args[0]} * 2"
    options = (
        ""
        if reentrant
        else p.options(0.2, early_stop=p.flag(), determinism_check=p.one("none", "default"))
    )
    y = p.let(
        f"checkpoint({f}, {', '.join(args)}, use_reentrant={reentrant}{p.options(0.3, preserve_rng_state=p.flag())}{options})",
        "y",
    )
    p.write("log.append(torch.rand(1))")
    ys = f"[t for t in tree_leaves({y}) if t.requires_grad]"
    for _ in range(p.size(1, 2)):
        keep = p.options(0.5, retain_graph=p.often(True, False), create_graph=p.chance(0.3))
        if p.chance(0.5):
            p.write(
                f"log.append(whole(lambda: torch.autograd.backward({ys}, [like(t) for t in {ys}]{keep}), [{', '.join(leaves)}]))"
            )
        else:
            p.write(
                f"log.append(attempt(lambda: torch.autograd.grad({ys}, [t for t in [{', '.join(leaves)}] if t.requires_grad], [like(t) for t in {ys}], allow_unused=True{keep})))"
            )
        p.write("log.append(torch.rand(1))")
    p.leaves = []
    return f"[{y}, [t.grad for t in [{', '.join(leaves)}]]]"


def sequential(p: Program) -> str:
    n = p.size(2, 5)
    parts = ", ".join(
        p.one(
            "nn.Linear(3, 3)",
            "nn.Tanh()",
            "nn.Dropout(0.5)",
            "nn.GELU()",
            "nn.LayerNorm(3)",
            "nn.ReLU(inplace=True)",
        )
        for _ in range(n)
    )
    p.write(f"model = nn.Sequential({parts}).double()")
    x = p.tensor((2, 3), p.chance(0.8))
    p.leaves.append("*model.parameters()")
    y = p.let(
        f"checkpoint_sequential({p.one('model', 'list(model)')}, {p.size(1, n)}, {x}, use_reentrant={p.chance(0.4)}{p.options(0.3, preserve_rng_state=p.flag())})"
    )
    p.write(f"log.append(whole(lambda: {y}.sin().sum().backward(), [{', '.join(p.leaves)}]))")
    return f"[{y}, torch.rand(1), [t.grad for t in [{', '.join(p.leaves)}]]]"


def tensor_hooks(p: Program) -> str:
    names = graph(p)
    p.write("handles = []")

    def hook(k: int) -> str:
        change = p.often("None", "g * 2", "g.clone()", "g.sin()", "None", "torch.zeros_like(g)")
        return f"lambda g: (log.append(({k}, g.detach().clone())), {change})[1]"

    for k in range(p.size(1, 5)):
        t = p.one(*names)
        kind = p.one("tensor", "tensor", "accumulate", "node", "prenode", "retain", "multi")
        if kind == "tensor":
            text = f"{t}.register_hook({hook(k)})"
        elif kind == "accumulate":
            what = p.often(
                f"log.append(({k}, t.grad.clone()))", "t.grad.mul_(2)", "setattr(t, 'grad', None)"
            )
            text = f"{t}.register_post_accumulate_grad_hook(lambda t: ({what}, None)[1])"
        elif kind == "node":
            text = (
                f"{t}.grad_fn.register_hook(lambda i, o: log.append(({k}, o[0] is None, len(o))))"
            )
        elif kind == "prenode":
            text = f"{t}.grad_fn.register_prehook(lambda o: ({p.one(f'log.append(({k}, len(o)))', 'None')}, {p.often('None', 'tuple(None if g is None else g * 3 for g in o)')})[1])"
        elif kind == "retain":
            text = f"{t}.retain_grad()"
        else:
            mode = p.one("all", "any")
            seen = (
                "[None if g is None else g.clone() for g in gs]" if mode == "all" else "gs.clone()"
            )
            text = f"torch.autograd.graph.register_multi_grad_hook([{t}, {p.one(*names)}], lambda gs: log.append(({k}, {seen})), mode={mode!r})"
        p.write(f"handles.append(attempt(lambda: {text}))")
        if p.chance(0.15):
            p.write("attempt(lambda: handles[-1].remove())")
    p.write("log.append([h if isinstance(h, Exception) else None for h in handles])")
    for _ in range(p.size(1, 2)):
        y = names[-1]
        keep = p.options(0.7, retain_graph=True) + p.options(0.3, create_graph=p.flag())
        if p.flag():
            p.write(f"log.append(attempt(lambda: {y}.sum().backward({keep[2:]})))")
        elif p.flag():
            p.write(
                f"log.append(attempt(lambda: {y}.sum().backward(inputs=[t for t in [{p.one(*names)}, {p.one(*names)}] if t.requires_grad]{keep})))"
            )
        else:
            p.write(
                f"log.append(attempt(lambda: torch.autograd.grad({y}.sum(), [{y}, *[t for t in [{p.one(*names)}] if t.requires_grad]], allow_unused=True{keep})))"
            )
        if p.chance(0.3):
            p.write("attempt(lambda: handles[0].remove())")
    return f"[[t, t.grad if t.is_leaf or t.retains_grad else None] for t in [{', '.join(names)}]]"


def module_hooks(p: Program) -> str:
    p.write("""class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(numbers(3, 3))
    def forward(self, x, y=None, *, scale=1.0):
        x = x * self.w * scale
        return (x, x.sin()) if y is None else x + y""")
    p.write(
        "model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double(); own = Own(); handles = []"
    )
    p.write(
        "def shown(x): return tree_map(lambda t: t.detach().clone() if isinstance(t, torch.Tensor) else t, x)"
    )
    for k in range(p.size(1, 5)):
        m = p.one("model", "model[0]", "model[1]", "model[2]", "own", "own")
        kind = p.one("forward", "pre", "full", "fullpre", "global", "global", "forward", "pre")
        order = p.options(0.2, prepend=p.flag())
        if kind == "forward":
            kw = p.chance(0.3)
            change = p.often("None", "tree_map(lambda t: t * 2, o)", "o")
            always = p.options(0.1, always_call=True)
            text = f"{m}.register_forward_hook(lambda m, i, {'k, ' if kw else ''}o: (log.append(({k}, shown(i), shown(o){', shown(k)' if kw else ''})), {change})[1]{order}{', with_kwargs=True' if kw else ''}{always})"
        elif kind == "pre":
            kw = p.chance(0.3)
            change = p.often(
                "None",
                "(i[0] * 2, *i[1:])" if not kw else "((i[0] * 2, *i[1:]), k)",
                "i[0]" if not kw else "None",
            )
            text = f"{m}.register_forward_pre_hook(lambda m, i{', k' if kw else ''}: (log.append(({k}, shown(i))), {change})[1]{order}{', with_kwargs=True' if kw else ''})"
        elif kind == "full":
            change = p.often("None", "tuple(None if g is None else g * 2 for g in i)")
            text = f"{m}.register_full_backward_hook(lambda m, i, o: (log.append(({k}, shown(i), shown(o))), {change})[1]{order})"
        elif kind == "fullpre":
            change = p.often("None", "tuple(None if g is None else g * 2 for g in o)", "o[0]")
            text = f"{m}.register_full_backward_pre_hook(lambda m, o: (log.append(({k}, shown(o))), {change})[1]{order})"
        else:
            name = p.one(
                "forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"
            )
            args = {
                "forward_hook": "m, i, o",
                "forward_pre_hook": "m, i",
                "full_backward_hook": "m, i, o",
                "full_backward_pre_hook": "m, o",
            }[name]
            text = f"nn.modules.module.register_module_{name}(lambda {args}: log.append(({k}, type(m).__name__)))"
        p.write(f"handles.append({text})")
    x = p.tensor((2, 3), p.chance(0.7))
    p.leaves += ["*model.parameters()", "own.w"]
    p.write("try:")
    call = p.one(
        f"own({x})",
        f"own({x}, {x})",
        f"own({x}, y={x} * 2)",
        f"own(model({x}), scale=2.0)",
        f"own(x={x})" if p.chance(0.2) else f"own({x}, scale=0.5)",
    )
    if p.chance(0.1):
        p.write("    handles[0].remove()")
    where = p.often("", "with torch.no_grad(): ") if p.chance(0.15) else ""
    p.write(f"    {where}out1 = attempt(lambda: model({x}))")
    p.write(f"    {where}out2 = attempt(lambda: {call})")
    p.write(
        "    y = [t for t in tree_leaves([out1, out2]) if isinstance(t, torch.Tensor) and t.requires_grad]"
    )
    if p.chance(0.3):
        p.write("    if handles: handles[-1].remove()")
    p.write(f"    leaves = [{', '.join(p.leaves)}]")
    p.write(
        f"    log.append(whole(lambda: sum([t.sin().sum() for t in y]).backward({p.one('', 'retain_graph=True', 'create_graph=True')}), leaves))"
    )
    if p.chance(0.3):
        p.write("    log.append(whole(lambda: sum([t.sin().sum() for t in y]).backward(), leaves))")
    p.write("finally:\n    for h in handles: h.remove()")
    leaves = ", ".join(p.leaves)
    p.leaves = []
    return f"[out1, out2, [t.grad for t in [{leaves}]]]"


def saved(p: Program) -> str:
    leaves = [p.tensor(p.shape(), p.chance(0.8)) for _ in range(p.size(1, 3))]
    names, depth = list(leaves), 0
    for _ in range(p.size(1, 4)):
        b = "    " * depth
        if depth < 3 and p.chance(0.7):
            pack = p.one(
                "lambda t: t.clone()",
                "lambda t: t.detach().numpy().copy()",
                "lambda t: (t, 2)",
                "lambda t: t",
                "lambda t: t.neg()",
            )
            unpack = {
                "lambda t: t.detach().numpy().copy()": "lambda a: torch.from_numpy(a)",
                "lambda t: (t, 2)": "lambda a: a[0]",
                "lambda t: t.neg()": "lambda a: a.neg()",
            }.get(pack, "lambda a: a")
            p.write(
                b
                + "with "
                + p.often(
                    f"torch.autograd.graph.saved_tensors_hooks({pack}, {unpack})",
                    "torch.autograd.graph.save_on_cpu()",
                    "torch.no_grad()",
                    "torch.autograd.graph.disable_saved_tensors_hooks('none here')",
                    "torch.autograd.graph.allow_mutation_on_saved_tensors()",
                )
                + ":"
            )
            depth += 1
            b = "    " * depth
        names = p.body(names, 3, b, 0.3)
    b = "    " * p.size(0, depth)
    wanted = f"[t for t in [{', '.join(leaves)}] if t.requires_grad]"
    y = names[-1]
    for _ in range(p.size(1, 2)):
        keep = p.options(0.6, retain_graph=True, create_graph=p.flag())
        p.write(
            f"{b}log.append(attempt(lambda: torch.autograd.grad({y}.sin().sum(), {wanted}, allow_unused=True{keep})))"
        )
    p.write(
        f"{b}log.append(attempt(lambda: torch.autograd.grad(sum([t.sum() for t in log[-1] if t is not None]), {wanted}, allow_unused=True)))"
    )
    p.leaves = []
    return f"[{', '.join(names)}]"


def custom(p: Program) -> str:
    n, m = p.size(1, 3), p.size(1, 3)
    shape = p.shape()
    separate, once, materialize = p.flag(), p.chance(0.2), p.chance(0.7)
    dirty, nondiff = p.chance(0.25), p.chance(0.25)
    args = ", ".join(f"x{k}" for k in range(n))
    rule = p.often("", "generate_vmap_rule = True") if separate else ""
    p.write(f"class Own(torch.autograd.Function):\n    {rule or 'pass'}")
    p.write(f"    @staticmethod\n    def forward({'' if separate else 'ctx, '}{args}):")
    outs = []
    coefficients = []
    for j in range(m):
        c = [p.one(0, 1, 2, -0.5) for _ in range(n)]
        if j == 0 and dirty:
            p.write("        x0.mul_(2)")
            outs.append("x0")
            coefficients.append([2] + [0] * (n - 1))
            continue
        way = "new" if dirty else p.often("new", "input", "view")
        if way != "new":
            k = p.size(0, n - 1)
            outs.append(f"x{k}" if way == "input" else f"x{k}.view_as(x{k})")
            coefficients.append([int(i == k) for i in range(n)])
            continue
        p.write(f"        y{j} = " + " + ".join(f"{a} * x{k}.sin()" for k, a in enumerate(c)))
        outs.append(f"y{j}")
        coefficients.append([f"{a} * x{k}.cos()" for k, a in enumerate(c)])
    own = [o for o in outs if o.startswith("y")]
    extra = [o for o in own if p.chance(0.4)]
    kept = [f"x{k}" for k in range(n)]
    save = f"ctx.save_for_backward({', '.join(kept + extra)})"
    marks = (
        [save]
        + (["ctx.mark_dirty(x0)"] if dirty else [])
        + ([f"ctx.mark_non_differentiable({own[-1]})"] if nondiff and own else [])
    )
    marks += [] if materialize else ["ctx.set_materialize_grads(False)"]
    p.rng.shuffle(marks)
    given = ", ".join(outs)
    tail = "," if m == 1 and p.chance(0.3) else ""
    if not separate:
        for each in marks:
            p.write(f"        {each}")
        p.write("        log.append(ctx.needs_input_grad)")
    p.write(f"        return {given}{tail}")
    if separate:
        p.write(
            f"    @staticmethod\n    def setup_context(ctx, inputs, output):\n        {args}, = inputs"
        )
        p.write("        outs = output if isinstance(output, tuple) else (output,)")
        for j, o in enumerate(outs):
            if o.startswith("y"):
                p.write(f"        {o} = outs[{j}]")
        for each in marks:
            p.write(f"        {each}")
    p.write(
        "    @staticmethod"
        + ("\n    @once_differentiable" if once else "")
        + f"\n    def backward(ctx, {', '.join(f'g{j}' for j in range(m))}):"
    )
    p.write(f"        {args}, *rest = ctx.saved_tensors")
    p.write(
        f"        log.append((ctx.needs_input_grad, [{', '.join(f'g{j} is None' for j in range(m))}]))"
    )
    if not materialize:
        p.write("        " + "; ".join(f"g{j} = 0 if g{j} is None else g{j}" for j in range(m)))
    grads = []
    for k in range(n):
        total = (
            " + ".join(
                f"g{j} * ({coefficients[j][k]})"
                for j in range(m)
                if not (nondiff and own and outs[j] == own[-1])
            )
            or "None"
        )
        text = total if total == "None" else f"{total} + 0 * x{k}"
        grads.append(
            f"({text}) if ctx.needs_input_grad[{k}] else None"
            if p.flag()
            else p.often(text, text, text, "None")
        )
    more = ", None" if p.chance(0.1) else ""
    p.write(f"        return {', '.join(grads)}{more}")
    if p.chance(0.4):
        p.write(
            f"    @staticmethod\n    def jvp(ctx, {', '.join(f't{k}' for k in range(n))}):\n        return {', '.join(['t0.sin()'] * m)}{tail}"
        )
    if separate and not rule and p.chance(0.4):
        p.write(
            f"    @staticmethod\n    def vmap(info, in_dims, {args}):\n        out = Own.apply(*[x if d is None else x.movedim(d, 0) for x, d in zip(({args},), in_dims)])"
        )
        p.write("        return out, tree_map(lambda t: 0, out)")
    leaves = [p.tensor(shape, p.chance(0.75)) for _ in range(n)]
    values = [p.often(f"{t} * 1.0", t, t, f"{t} * 1.0") for t in leaves]
    if p.chance(0.1) and n > 1:
        values[-1] = values[0] = leaves[0]
    call = f"Own.apply({', '.join(values)})"
    wanted = f"[t for t in [{', '.join(leaves)}] if t.requires_grad]"
    ways = ["plain", "plain", "plain", "plain", "no_grad", "checkpoint"]
    if separate and not dirty:
        plain = all(o.startswith("y") for o in outs)
        ways += (
            ["func"]
            + ["jvp"] * plain
            + ["vmap"] * (bool(rule) or any("def vmap" in line for line in p.lines))
        )
    way = p.one(*ways)
    p.leaves = []
    if way in ("func", "vmap", "jvp"):
        given = ", ".join(f"{t}.detach()" for t in leaves)
        own = "lambda *a: Own.apply(*[t * 1.0 for t in a])"
        transform = p.one("grad", "jacrev", "grad_and_value")
        if way == "jvp":
            p.write(f"out = jvp({own}, ({given},), like(({given},)))")
        elif way == "vmap":
            p.write(f"out = vmap({own})({given})")
        elif transform == "jacrev":
            p.write(f"out = jacrev({own}{p.options(0.5, argnums=p.size(0, n - 1))})({given})")
        else:
            p.write(
                f"out = {transform}(lambda *a: total(({own})(*a)){p.options(0.5, argnums=p.size(0, n - 1))})({given})"
            )
        p.write("log.clear()")  # how often a rule runs differs
        return "out"
    if way == "no_grad":
        p.write(f"with torch.no_grad(): y = {call}")
    elif way == "checkpoint":
        p.write(f"y = checkpoint(lambda: {call}, use_reentrant=False)")
    else:
        p.write(f"y = {call}")
    p.write("ys = [t for t in tree_leaves(y) if t.requires_grad]")
    p.write(
        "log.append([[t, t.requires_grad, t.is_leaf, t.output_nr, type(t.grad_fn).__name__, t._version, t._is_view()] for t in tree_leaves(y)])"
    )
    if p.chance(0.25):
        p.write("log.append(attempt(lambda: tree_leaves(y)[0].mul_(2)))")
    picked = p.often("ys", "ys[:1]", "ys[-1:]")
    for _ in range(p.size(1, 2)):
        keep = p.options(0.6, retain_graph=True, create_graph=p.flag())
        p.write(
            f"log.append(attempt(lambda: torch.autograd.grad([t.sin().sum() for t in {picked}], {wanted}, allow_unused=True{keep})))"
        )
    p.write(
        f"log.append(attempt(lambda: torch.autograd.grad(sum([t.sum() for t in log[-1] if t is not None]), {wanted}, allow_unused=True)))"
    )
    return f"[y, [t._version for t in [{', '.join(leaves)}]]]"


PROGRAMS: list[Callable[[Program], str]] = [
    backward, checkpointed, custom, forward, func, func, functional, module_hooks, modes, modules, saved, sequential,
    tensor_hooks,
]  # fmt: skip

#: Here PyTorch's gradients, if they are zeros, may require grad where ours do not: of what is constant.
CONSTANTS = (forward, func, functional, modules)

#: Words of PyTorch's errors in programs that tinytorch has an answer for, and of its own failures.
ANSWERED = (
    "INTERNAL ASSERT", "detach_copy", "output 0 of Exp", "detached in-place", "Nested forward mode",
    "Batching rule not implemented", "Expected at least one Tensor to vmap over",
)  # fmt: skip

END = """
out = [{result}, log]
wanted = [(t * (k + 1)).sum() for k, t in enumerate(tree_leaves(out)) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point() and not t.is_inference()]
leaves = [{leaves}]
grads = attempt(lambda: torch.autograd.grad(sum(wanted), leaves, allow_unused=True)) if wanted and leaves else (None,) * len(leaves)
"""


def text_of(call: Callable[[Program], str], rng: random.Random) -> str:
    p = Program(rng)
    result = call(p)
    lines = "\n".join(p.lines)
    return (
        f"{BEGIN}{lines}{END.replace('{leaves}', ', '.join(p.leaves)).replace('{result}', result)}"
    )


def outcome(text: str, library: str) -> Any:
    names = {
        "__builtins__": {**vars(builtins), "__import__": importer(library)},
        "__name__": "program",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "program", "exec"), names)
        except Exception as error:
            return [error]
    return [names["out"], names["grads"]]


def words(seen: Any) -> str:
    """Return the words of all errors in an outcome."""
    if isinstance(seen, Exception):
        return str(seen)
    parts = list(seen.values()) if isinstance(seen, dict) else seen
    return " ".join(map(words, parts)) if isinstance(parts, (list, tuple)) else ""


def difference(ours: Any, theirs: Any, constants: bool, where: str = "seen") -> str | None:
    """Return what is different in two outcomes, or None."""
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        same = type(ours).__name__ == type(theirs).__name__
        return None if same else f"{where}: {ours!r} against {theirs!r}"
    if isinstance(theirs, (dict, list, tuple)):
        if type(ours).__name__ != type(theirs).__name__ or len(ours) != len(theirs):
            return f"{where}: {ours!r} against {theirs!r}"
        if isinstance(theirs, dict) and list(ours) != list(theirs):
            return f"{where}: {list(ours)} against {list(theirs)}"
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        found = (difference(ours[k], theirs[k], constants, f"{where}[{k!r}]") for k in keys)
        return next((each for each in found if each), None)
    if where.startswith("seen[1]") and (ours is None) != (theirs is None):
        return (
            None
            if not (theirs if ours is None else ours).any()
            else f"{where}: {ours!r} against {theirs!r}"
        )
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, tinytorch.Tensor):
        same = str(ours).replace("tinytorch", "torch") == str(theirs)
        return None if same else f"{where}: {ours!r} against {theirs!r}"
    if (str(ours.dtype), tuple(ours.shape)) != (str(theirs.dtype), tuple(theirs.shape)):
        return f"{where}: {ours.dtype}, {ours.shape} against {theirs.dtype}, {theirs.shape}"
    if ours.requires_grad != theirs.requires_grad and not (constants and theirs.requires_grad):
        return f"{where}: requires_grad {ours.requires_grad} against {theirs.requires_grad}"
    if not constants and ours.is_leaf != theirs.is_leaf:
        return f"{where}: is_leaf {ours.is_leaf} against {theirs.is_leaf}"
    near = 1e-8 if str(theirs.dtype) == "torch.float64" else 1e-4
    if not np.allclose(ours.detach().numpy(), theirs.detach().numpy(), near, near, equal_nan=True):
        return f"{where}: {ours} against {theirs}"
    return None


@settings(
    max_examples=20_000 if PROFILE == "long" else 300, suppress_health_check=list(HealthCheck)
)
@seeded
@given(st.sampled_from(PROGRAMS), st.integers(0, 2**40))
def test_random_derivatives_agree(program: Callable[[Program], str], seed: int) -> None:
    text = text_of(program, random.Random(seed))
    theirs = outcome(text, "torch")
    if any(each in words(theirs) for each in ANSWERED):
        return
    found = difference(outcome(text, "tinytorch"), theirs, program in CONSTANTS)
    assert found is None, f"{found}\n\n{text}"
